"""Where to draw the nodes of the families whose shape is known; every helper returns one (x, y) per node."""

from __future__ import annotations

from math import ceil, cos, pi, sin, sqrt

Spot = tuple[float, float]


def circle(count: int, x: float = 0.0, radius: float = 1.0, start: float = pi / 2) -> list[Spot]:
    """`count` spots on a circle around (x, 0), clockwise from the angle `start`.

    >>> [(round(a, 3), round(b, 3)) for a, b in circle(2)]
    [(0.0, 1.0), (0.0, -1.0)]
    """
    angles = [start - 2 * pi * index / count for index in range(count)]
    return [(x + radius * cos(angle), radius * sin(angle)) for angle in angles]


def two_circles(count: int) -> list[Spot]:
    """Two circles of `count` spots side by side, the second turned so that links across do not coincide."""
    return circle(count, -1.8) + circle(count, 1.8, start=pi / 2 - pi / count / 2)


def snake(count: int) -> list[Spot]:
    """Rows that run right, left, right: a long chain in a square.

    >>> snake(4)
    [(0.0, 0.0), (1.0, 0.0), (1.0, -1.0), (0.0, -1.0)]
    """
    width = ceil(sqrt(count))
    lines = [divmod(index, width) for index in range(count)]
    return [(float(column if row % 2 == 0 else width - 1 - column), float(-row)) for row, column in lines]


def bent_grid(rows: int, columns: int) -> list[Spot]:
    """A grid whose lines are bent, so that the links around a torus do not run through other nodes."""
    bend = 0.45
    return [
        (column + bend * sin(pi * row / (rows - 1)), -row - bend * sin(pi * column / (columns - 1)))
        for row in range(rows)
        for column in range(columns)
    ]


def tree(count: int) -> list[Spot]:
    """A binary tree in heap order, root on top, leaves evenly spread.

    >>> tree(3)
    [(0.5, 0.0), (0.25, -0.5), (0.75, -0.5)]
    """
    levels = [(index + 1).bit_length() - 1 for index in range(count)]
    return [
        ((index + 1 - 2**level + 0.5) / 2**level, -level / max(1, levels[-1] + 1)) for index, level in enumerate(levels)
    ]
