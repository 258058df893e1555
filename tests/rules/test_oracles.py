"""The oracles against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.rules.oracles import ORACLES

LINE = {"own": [0.0], "received": [[1.0], [2.0], [4.0], [10.0]], "weights": [0.4, 0.1, 0.2, 0.2, 0.1]}


@pytest.mark.parametrize(
    ("name", "f", "options", "expected"),
    [
        ("WeiMean", 0, {}, 0.1 + 0.4 + 0.8 + 1.0),
        ("NoComm", 1, {}, 0.0),
        ("CooMed", 1, {}, 2.0),
        # scores with 2 nearest others: 0: 1+4, 1: 1+1, 2: 1+4, 4: 4+9, 10: 36+64
        ("Krum", 1, {}, 1.0),
        ("MultiKrum", 1, {}, 7.0 / 4),
        ("MultiKrum", 1, {"m": 2}, 0.5),
        ("TriMean", 1, {}, 6.0 / 3),
        ("FABA", 1, {}, 7.0 / 4),
        # inside: mean 3.4 drops 10, mean 1.75 drops 4
        ("FABA", 2, {"own": "inside"}, 1.0),
        # outside: mean 4.25 drops 10, mean 7/3 of (1, 2, 4) drops 4
        ("FABA", 2, {"own": "outside"}, 1.0),
        # mean 2.3 drops 10; left 0.1 + 0.4 + 0.8 over weight 0.9
        ("IOS", 1, {}, 1.3 / 0.9),
        ("IOS", 2, {}, 0.5 / 0.7),
        ("CC", 0, {"tau": 2.0}, (1.0 + 2.0 + 2.0 + 2.0) / 5),
        ("CC", 0, {"tau": 2.0, "centre": "memory", "memory": [2.0]}, 2.0 + (-2.0 - 1.0 + 0.0 + 2.0 + 2.0) / 5),
        ("CC", 0, {"tau": 2.0, "weighting": "mixing"}, 0.1 + 0.4 + 0.4 + 0.2),
        ("CC", 0, {"tau": 1.0, "iterations": 2}, 0.8 + (-0.8 + 0.2 + 1.0 + 1.0 + 1.0) / 5),
        ("SCC", 0, {"tau": 2.0}, 0.1 + 0.4 + 0.4 + 0.2),
        ("DRSA", 0, {"penalty": 0.5, "step": 0.1}, 4 * 0.05),
        ("DRSA", 0, {"penalty": 0.5, "step": 0.1, "at": "start", "previous": [2.0]}, (-1 + 0 + 1 + 1) * 0.05),
        # median 2; the four nearest are 0, 1, 2, 4; the three nearest 1, 2 and, on a tie of 0 and 4, the smaller
        ("MeaMed", 1, {}, 7.0 / 4),
        ("MeaMed", 2, {}, 1.0),
        # trimmed mean of (1, 2, 4) is 7/3: 10 is the farthest; of (2) alone, the three nearest are 1, 2 and, tied, 0
        ("Phocas", 1, {}, 7.0 / 4),
        ("Phocas", 2, {}, 1.0),
        ("generic", 2, {"rule": "NNA", "r": 0.25}, 0.75),
        # mean 3.4, squared distances 11.56, 5.76, 1.96, 0.36 and 43.56: 10 goes; the rest weighs 154.6/43.56 > 3 with
        # less variance; then 4 goes and 1.8 is left, less than 3
        ("CAF", 1, {}, (37.8 + 2 * 41.6 + 4 * 43.2) / (32.0 + 37.8 + 41.6 + 43.2)),
        ("SMEA", 1, {}, 7.0 / 4),
        ("SMEA", 2, {}, 1.0),
        # floor(2 * 1 * 4 / 5) = 1: 10 comes to 4; floor(2 * 2 * 3 / 5) = 2: 10 and 4 come to 2
        ("ARC", 1, {"rule": "WeiMean"}, 0.1 + 0.4 + 0.8 + 0.4),
        ("ARC", 2, {"rule": "WeiMean"}, 0.1 + 0.4 + 0.4 + 0.2),
        # losses 2.5, 1.5, 0.5, 1.5, 7.5, with rho 0.1: 1.6, 0.9, 3.1, 17.5
        ("Zeno", 2, {"rho": 0.1, "loss": lambda x: abs(float(x[0]) - 2.5)}, 1.0),
        ("Zeno", 2, {"rho": 0.0, "loss": lambda x: abs(float(x[0]) - 2.9)}, 2.0),
        # 1 and 10 trimmed, own before the step at 3: (3 + 2 + 4) / 3, and a step of -3
        ("ByRDiE", 1, {"previous": [3.0], "number": 7}, 0.0),
        ("NNA", 2, {}, 1.0),
        ("MDA", 2, {}, 1.0),
        ("bucketing", 0, {"groups": [[0, 3], [1, 2]], "rule": "WeiMean"}, 0.2 * 5.5 + 0.4 * 3.0),
        # three nearest: (0, 1, 2) three times, (1, 2, 4), (2, 4, 10)
        ("NNM", 2, {"rule": "CooMed"}, 1.0),
        ("NNM", 2, {"rule": "WeiMean"}, (1.0 + 1.0 + 1.0 + 7.0 / 3 + 16.0 / 3) / 5),
        # weights 0.4, 0.1, 0.2, 0.2, 0.1, so 0.8 counts: own, 1, 2 and half of 4; the same for 1 and, as own is
        # before 4 at the same distance, for 2; 4, 2, 1 and 0.3 of own; 10, 4, 2, 1 and 0.2 of own
        ("WeightedNNM", 1, {"rule": "WeightedCooMed"}, 0.9 / 0.8),
        ("WeightedNNM", 1, {"rule": "WeiMean"}, 0.7 * 0.9 / 0.8 + 0.2 * 1.3 / 0.8 + 0.1 * 2.3 / 0.8),
        ("UBAR", 0, {"rho": 0.5, "alpha": 0.25, "loss": lambda x: abs(float(x[0]) - 1.5)}, 0.75 * 1.5),
        # IOS cuts 10, average 1.444; distances own 1.444 (0.4), 1 0.444 (0.1), 2 0.556 (0.2), 4 2.556 (0.2):
        # the median of 0.9 is own's 1.444, and 10 is 8.556 away: 5.9 medians
        ("Reprieve", 1, {}, 1.3 / 0.9),
        ("Reprieve", 1, {"c": 6.0}, 2.3),
        # IOS cuts 10 and 4, average 5/7; distances own 0.714 (0.4), 1 0.286 (0.1), 2 1.286 (0.2), median of 0.7: 0.714;
        # 4 is 3.286 away: 4.6 medians, 10 is 13.0
        ("Reprieve", 2, {"c": 4.5}, 0.5 / 0.7),
        ("Reprieve", 2, {"c": 4.7}, 1.3 / 0.9),
        # IOS cuts 10, average 13/9; distances own 1.444 (0.4), 1 0.444 (0.1), 2 0.556 (0.2), 4 2.556 (0.2): h = 0.2;
        # 10 is 5.9 medians away: left out, h' = 0.1, and all but 0.2 of the 0.9 are within 13/9; 4 is at 23/9
        ("Tether", 1, {}, (0.1 + 0.4 + 0.8 * 13 / 23) / (0.7 + 0.2 * 13 / 23)),
        # not left out: all but 1/4 are within 23/9, and 10 is at 77/9
        ("Tether", 1, {"c": 6.0}, (0.1 + 0.4 + 0.8 + 1.0 * 23 / 77) / (0.9 + 0.1 * 23 / 77)),
        # IOS cuts 10: own keeps its 0.1
        ("LazyIOS", 1, {}, 0.1 + 0.4 + 0.8),
        # b = 0.2, neighbours weigh 0.6: 1 and 2 (0.3) are kept, 4 would make 0.5 > 0.4
        ("GTS", 1, {}, 0.1 + 0.4),
        # tau^2 = (0.1 * 1 + 0.2 * 4) / 0.2 = 4.5
        ("RTC", 1, {}, 0.1 + 0.4),
        ("ClippedGossip", 1, {}, 0.1 + 0.4 + 0.3 * math.sqrt(4.5)),
        ("ClippedGossip", 0, {}, 0.1 + 0.4 + 0.8 + 1.0),
        # room 0.6 - 0.4 = 0.2: only 1 is kept
        ("CS+", 1, {}, 0.6),
        ("CS+", 0, {}, 0.1 + 0.4 + 0.8 + 1.0),
        ("BALANCE", 1, {}, 0.0),
        # weights own 0.4 at 0, 0.1 at 1, 0.2 at 2, 0.2 at 4, 0.1 at 10: half is reached exactly after 1
        ("WeightedCooMed", 1, {}, 1.5),
        # b = 0.2: off come 1 and half of 2, 10 and half of 4; left 0.1 at 2 and 0.1 at 4 with own 0.4
        ("WeightedTriMean", 1, {}, 0.6 / 0.6),
        # b' = 0.2, weight 0.8: own 0.4, 1 (0.1, 1), 2 (0.2, 4), 4 (0.1, 16); 1: own (0.4, 1), 2 (0.2, 1), 4 (0.1, 9)
        ("WeightedKrum", 0, {}, 1.0),
        ("WeightedGeoMed", 1, {}, 1.5),
        ("UBAR", 0, {"rho": 0.5, "alpha": 0.25, "loss": lambda x: abs(float(x[0]) - 0.1)}, 0.0),
    ],
)
def test_on_a_line(name: str, f: int, options: dict[str, object], expected: float) -> None:
    result = ORACLES[name](LINE["own"], LINE["received"], LINE["weights"], f, **options)
    assert result.shape == (1,)
    assert result[0] == pytest.approx(expected, abs=1e-12)


def test_faba_variants_differ() -> None:
    # inside: mean of (-8, 0, 1, 5) is -0.5: drops 5; outside: mean of (0, 1, 5) is 2: drops 5, then 0.5: ties, drops 0
    received, equal = [[0.0], [1.0], [5.0]], [0.25] * 4
    assert ORACLES["FABA"]([-8.0], received, equal, 2, own="outside")[0] == pytest.approx(-3.5)
    # inside, second step: mean of (-8, 0, 1) is -7/3: drops 1
    assert ORACLES["FABA"]([-8.0], received, equal, 2)[0] == pytest.approx(-4.0)


def test_even_number_of_values() -> None:
    arguments = ([0.0], [[1.0], [3.0], [9.0]], [0.25] * 4)
    assert ORACLES["CooMed"](*arguments, 0)[0] == 2.0
    assert ORACLES["CooMed"](*arguments, 0, even="lower")[0] == 1.0
    assert ORACLES["MeaMed"](*arguments, 1)[0] == pytest.approx(4.0 / 3)


def test_geo_med_of_a_triangle_is_its_fermat_point() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
    result = ORACLES["GeoMed"](corners[0], corners[1:], [1 / 3] * 3, 0)
    assert result == pytest.approx(corners.mean(axis=0), abs=1e-9)
    on_a_line = ORACLES["GeoMed"]([0.0], [[1.0], [2.0], [4.0], [10.0]], [0.2] * 5, 1)
    assert on_a_line[0] == pytest.approx(2.0, abs=1e-3)


def test_bulyan() -> None:
    # S = 7, f = 1: five picks, 5 and 100 are left over; then the three nearest the median 2
    received = [[1.0], [2.0], [3.0], [4.0], [5.0], [100.0]]
    # scores 30, 15, 10, 10, 15, 30 -> 2 (tie with 3); of 0 1 3 4 5 100, 3 nearest: 26, 14, 9, 11, 21 -> 3;
    # of 0 1 4 5 100, 2 nearest: 17, 10, 10, 17 -> 1; of 0 4 5 100, 1 nearest: 16, 1, 1 -> 4; of 0 5 100: 25, 25 -> 0
    assert ORACLES["Bulyan"]([0.0], received, [1 / 7] * 7, 1)[0] == pytest.approx((1.0 + 2.0 + 3.0) / 3)


def test_sim_rew() -> None:
    previous = np.array([1.0, 1.0])
    own = previous + np.array([3.0, 4.0])  # length 5, both signs positive
    twin, opposite, mixed = previous + np.array([[6.0, 8.0], [-3.0, -4.0], [10.0, 0.0]])
    # kl: twin's histogram equals own (0), opposite's is infinitely far, mixed has half its mass in zero: log 2
    share = 1.0 / (1.0 + 1.0 + 0.5)
    expected = previous + share * np.array([3.0, 4.0]) * 2 + 0.5 * share * 0.6 * np.array([5.0, 0.0])
    result = ORACLES["SimRew"](own, [twin, opposite, mixed], [0.25] * 4, 1, previous=previous)
    assert result == pytest.approx(expected, abs=1e-12)
    # published: logits (1/3) p_positive: own 1/3, twin 1/3, opposite 0, mixed 1/6
    total = 2 * math.exp(1 / 3) + 1.0 + math.exp(1 / 6)
    expected = (
        previous
        + 2 * math.exp(1 / 3) / total * np.array([3.0, 4.0])
        + math.exp(1 / 6) / total * 0.6 * np.array([5.0, 0.0])
    )
    result = ORACLES["SimRew"](own, [twin, opposite, mixed], [0.25] * 4, 1, previous=previous, divergence="published")
    assert result == pytest.approx(expected, abs=1e-12)


def test_ties_go_to_the_lowest_sender() -> None:
    # -1 and 1 are equally far from own and from the mean
    assert ORACLES["NNA"]([0.0], [[1.0], [-1.0]], [1 / 3] * 3, 1)[0] == pytest.approx(0.5)
    assert ORACLES["FABA"]([0.0], [[1.0], [-1.0]], [1 / 3] * 3, 1)[0] == pytest.approx(-0.5)
    assert ORACLES["IOS"]([0.0], [[1.0], [-1.0]], [1 / 3] * 3, 1)[0] == pytest.approx(-0.5)
    # pairs (own, first) and (own, second) have the same diameter
    assert ORACLES["MDA"]([0.0], [[1.0], [-1.0]], [1 / 3] * 3, 1)[0] == pytest.approx(0.5)


def test_balance_measures_by_its_own_length() -> None:
    received = [[1.2], [0.8], [2.0]]
    assert ORACLES["BALANCE"]([1.0], received, [0.25] * 4)[0] == pytest.approx(1.0)
    assert ORACLES["BALANCE"]([1.0], received, [0.25] * 4, gamma=1.0, alpha=0.25)[0] == pytest.approx(0.25 + 1.0)


def test_byrdie_takes_turns() -> None:
    own, previous, received = [5.0, 5.0, 5.0], [0.0, 0.0, 0.0], [[3.0, 3.0, 3.0], [9.0, 9.0, 9.0]]
    arguments = (own, received, [1 / 3] * 3, 0)
    assert ORACLES["ByRDiE"](*arguments, previous=previous, number=4).tolist() == [0.0, 9.0, 0.0]
    assert ORACLES["ByRDiE"](*arguments, previous=previous, number=5, repeats=3).tolist() == [0.0, 9.0, 0.0]
    assert ORACLES["ByRDiE"](*arguments, previous=previous, number=1, block=2).tolist() == [9.0, 0.0, 9.0]
    assert ORACLES["ByRDiE"](*arguments, previous=previous, number=1, block=None).tolist() == [9.0, 9.0, 9.0]


def test_isolated_worker_keeps_its_own() -> None:
    own = np.array([1.0, -2.0])
    nobody = np.zeros((0, 2))
    for name in (
        "WeiMean",
        "NoComm",
        "CooMed",
        "GeoMed",
        "TriMean",
        "FABA",
        "IOS",
        "MeaMed",
        "NNA",
        "MDA",
        "LazyIOS",
        "GTS",
        "ClippedGossip",
        "CS+",
        "RTC",
        "CAF",
        "SMEA",
    ):
        assert ORACLES[name](own, nobody, [1.0], 0) == pytest.approx(own), name
    assert ORACLES["SCC"](own, nobody, [1.0], 0, tau=1.0) == pytest.approx(own)
    assert ORACLES["DRSA"](own, nobody, [1.0], 0, penalty=1.0) == pytest.approx(own)
