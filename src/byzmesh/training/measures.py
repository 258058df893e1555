"""The built-in metrics that need only models and task.

With x_n the models of the N honest workers, xbar their mean and t the test set:

    accuracy           (1/N) sum_n (the fraction of t that x_n gets right)
    worst_accuracy     min_n (the fraction of t that x_n gets right)
    average_accuracy   the fraction of t that xbar gets right
    class_accuracy     of class c: (1/N) sum_n (the fraction of it that x_n gets right)
    own_accuracy       (1/N) sum_n (the fraction of n's training data that x_n gets right); own_accuracy_worst: min_n
    loss               (1/N) sum_n (the mean of loss(x_n; s) over s in t)
    perplexity         (1/N) sum_n exp(the mean of loss(x_n; s) over the tokens s of t)
    backdoor           (1/N) sum_n (the fraction with the trigger that x_n answers as planted)
    consensus_error    CE = ||v||, v_j = (1/N) sum_n (x_n,j - xbar_j)^2
    disagreement       H = (1/N) sum_n ||x_n - xbar||^2
    gradient           ||(1/N) sum_n grad f_n(xbar)||^2, f_n the loss on n's data
    bytes_sent         (1/N) sum_n (the bytes that n has sent); bytes_sent_total is the sum
"""
# Kernels are imported where they are used: a table of stored runs needs a metric's title, not its code.

from __future__ import annotations

import numpy as np

from byzmesh.training.evaluation import Evaluation
from byzmesh.training.metrics import register_metric


@register_metric("accuracy", unit="percent", direction="up", overview=True)
def accuracy(at: Evaluation) -> float | None:
    """Fraction of the test set that an honest model gets right, the mean over the honest workers."""
    return _mean(at, "accuracy")


@register_metric("loss", direction="down", overview=True)
def loss(at: Evaluation) -> float | None:
    """Mean loss on the test set, the mean over the honest workers."""
    return _mean(at, "loss")


@register_metric("perplexity", direction="down", scale="log")
def perplexity(at: Evaluation) -> float | None:
    """e to the mean loss per token on the test part of a text, the mean over the honest workers; recorded for text."""
    return _mean(at, "perplexity")


@register_metric("backdoor", direction="down", alone=False)
def backdoor(at: Evaluation) -> float | None:
    """Fraction of test samples with the trigger that a model answers as planted; recorded under a backdoor."""
    return _mean(at, "backdoor")


@register_metric("worst_accuracy", unit="percent", direction="up", alone=False)
def worst_accuracy(at: Evaluation) -> float | None:
    """Accuracy of the worst honest worker."""
    return float(np.min(at.measures["accuracy"])) if "accuracy" in at.measures else None


@register_metric("average_accuracy", unit="percent", direction="up", alone=False)
def average_accuracy(at: Evaluation) -> float | None:
    """Accuracy of the average of the honest models."""
    return float(at.task.evaluate(at.average[None])["accuracy"][0]) if "accuracy" in at.measures else None


@register_metric("class_accuracy", unit="percent", direction="up")
def class_accuracy(at: Evaluation) -> dict[str, float] | None:
    """Accuracy per class of the test set, the mean over the honest workers: class_accuracy_0, class_accuracy_1, ..."""
    from byzmesh.problems.base import Classifies

    if "accuracy" not in at.measures or not isinstance(at.task, Classifies):
        return None
    means = at.task.class_accuracy(at.models).mean(axis=0)
    return {f"class_accuracy_{label}": float(mean) for label, mean in enumerate(means)}


@register_metric("own_accuracy", unit="percent", direction="up", title="accuracy on a worker's own data")
def own_accuracy(at: Evaluation) -> dict[str, float] | None:
    """Fraction of its own training data that an honest worker's model gets right: the mean, and own_accuracy_worst."""
    from byzmesh.problems.base import KnowsItsData

    if "accuracy" not in at.measures or not isinstance(at.task, KnowsItsData):
        return None
    right = at.task.own_accuracy(at.models, np.arange(len(at.models)) if at.rows is None else at.rows)
    return {"own_accuracy": float(right.mean()), "own_accuracy_worst": float(right.min())}


@register_metric(
    "consensus_error", direction="down", scale="log", title="consensus error CE", alone=False, overview=True
)
def consensus_error(at: Evaluation) -> float:
    """CE, the paper's column: norm of the vector of per-coordinate variances of the honest models."""
    return at.once(_spread)[0]


@register_metric("disagreement", direction="down", scale="log", title="disagreement H", alone=False)
def disagreement(at: Evaluation) -> float:
    """H: mean squared distance of the honest models to their average."""
    return at.once(_spread)[1]


@register_metric(
    "gradient", direction="down", scale="log", title="squared gradient norm at the average model", alone=False
)
def gradient(at: Evaluation) -> float:
    """Squared norm of the whole loss's gradient at the average model: the left side of Theorem 1."""
    if at.setting is not None and at.setting.network.samples is not None:
        return float(np.sum((at.setting.network.target @ at.task.local_gradients(at.average)) ** 2))
    return float(np.sum(at.task.full_gradient(at.average) ** 2))


@register_metric("bytes_sent", direction="down", title="bytes sent per worker")
def bytes_sent(at: Evaluation) -> dict[str, float] | None:
    """Bytes of all messages since round 0, with headers: the mean over the honest workers, and `bytes_sent_total`."""
    if at.sent_bytes is None:
        return None
    return {"bytes_sent": float(np.mean(at.sent_bytes)), "bytes_sent_total": float(np.sum(at.sent_bytes))}


def _mean(at: Evaluation, name: str) -> float | None:
    return float(np.mean(at.measures[name])) if name in at.measures else None


def _spread(at: Evaluation) -> tuple[float, float]:
    from byzmesh.training.spread import spread

    return spread(at.models)
