"""Data sets, partitions, losses and gradients for all workers at once."""

from byzmesh.problems.base import Problem, Task, problem, problems
from byzmesh.problems.data.datasets import DATASETS, Dataset, dataset
from byzmesh.problems.data.partition import partitions

__all__ = ["DATASETS", "Dataset", "Problem", "Task", "dataset", "partitions", "problem", "problems"]
