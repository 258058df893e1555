"""Mixing weights by dense matrices: the slow way, which sparse rows are compared with."""

from __future__ import annotations

import numpy as np


def dense_weights(links: np.ndarray, scheme: str) -> np.ndarray:
    """(n, n) W' of a scheme on an (n, n) adjacency matrix."""
    degree = links.sum(axis=1)
    between = {
        "metropolis-hastings": lambda: links / (1.0 + np.maximum.outer(degree, degree)),
        "lazy": lambda: links / (1.0 + np.maximum.outer(degree, degree)) / 2.0,
        "equal": lambda: links / (1.0 + degree[:, None]),
        "max-degree": lambda: links / (1.0 + degree.max()),
    }[scheme]()
    np.fill_diagonal(between, 1.0 - between.sum(axis=1))
    return np.asarray(between)
