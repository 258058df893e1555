"""Data sets, partitions, losses and gradients for all workers at once."""

from byzmesh.problems.base import Problem, Task, problem, problems
from byzmesh.problems.data.datasets import DATASETS, Dataset, dataset
from byzmesh.problems.data.partition import make_partition, partitions

__all__ = ["DATASETS", "Dataset", "Problem", "Task", "dataset", "make_partition", "partitions", "problem", "problems"]
