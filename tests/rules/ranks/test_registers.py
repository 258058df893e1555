"""Networks in registers give the bits of networks that are read from an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.rules import ranks
from byzmesh.rules.ranks import registers, selection
from tests.rules.ranks.test_ranks import make_case


def means(
    monkeypatch: pytest.MonkeyPatch, worth: float, rows: Any, index: Any, present: Any, cut: int, apart: bool
) -> np.ndarray[Any, Any]:
    """The trimmed means, by networks that are compiled after `worth` comparisons."""
    monkeypatch.setattr(selection, "WORTH", worth)
    values = present.sum(axis=1) - apart
    lower = np.minimum(cut, (values - 1) // 2).clip(0)
    upper = np.maximum(values - cut, lower + 1) if cut else values
    return np.asarray(ranks.rank_mean((rows[:3], rows[3:]), index, present, lower, upper, apart=apart))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("cut", "apart"), [(1, True), (2, False)])
def test_registers_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, dtype: str, cut: int, apart: bool) -> None:
    rows, index, present = make_case(5, 4, 6, 301, dtype)
    present[:] = True
    present[1:, -1] = False
    rows[2, 7], rows[4, 7], rows[5, 7] = np.finfo(dtype).max, np.finfo(dtype).max, -np.finfo(dtype).max
    slow = means(monkeypatch, np.inf, rows, index, present, cut, apart)
    monkeypatch.setattr(registers, "kernel", counting := Counting(registers.kernel))
    fast = means(monkeypatch, -1.0, rows, index, present, cut, apart)
    assert counting.calls == 2, "there are two networks, for six and for five values"
    np.testing.assert_array_equal(fast.view(f"i{fast.itemsize}"), slow.view(f"i{slow.itemsize}"))


def test_a_network_is_compiled_once_it_has_compared_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "kernel", counting := Counting(lambda network: lambda *arrays: None))
    monkeypatch.setattr(selection, "_compared", type(selection._compared)())
    monkeypatch.setattr(selection, "WORTH", 3 * 50.0)
    chosen = selection.Selection(
        np.array([[0, 1, 2]]), np.ones((1, 3), bool), np.array([1]), np.array([2]), apart=False
    )
    rows = np.arange(150.0).reshape(3, 50)
    for calls in (0, 0, 1, 2):  # three comparisons of 50 pairs each time
        chosen.mean(rows, rows[:0])
        assert counting.calls == calls
    narrow = rows[:, :1].copy()
    chosen.mean(narrow, narrow[:0])
    assert counting.calls == 2, "less than a register of columns"


class Counting:
    """Counts the calls of a function."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0

    def __call__(self, network: str) -> Any:
        self.calls += 1
        return self.function(network)
