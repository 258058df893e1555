"""Aggregation over blocks of coordinates gives what aggregation at once does, from one block in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Rule
from byzmesh.rules.inbox import make_inbox
from byzmesh.rules.streamed import apply_streamed, streams
from tests.rules.cases import VARIANTS

STREAMED = [(name, options) for name, options in VARIANTS if streams(bm.rule(name, **options))]
EXACT = ("IOS", "TriMean", "CooMed", "Krum", "WeiMean", "NoComm", "FABA")
"""Rules whose coefficients do not depend on the last bit of a distance."""
COLUMNS = 1000
CLOSE: dict[str, Any] = {"float32": {"rtol": 1e-6, "atol": 1e-6}, "float64": {"rtol": 1e-12, "atol": 1e-13}}


def models(rows: int = 6, columns: int = COLUMNS, dtype: str = "float32", seed: int = 0) -> Any:
    made = np.random.default_rng(seed).normal(size=(rows, columns)) + 1.0
    made[-1] *= -4.0
    return made.astype(dtype)


def both(rule: Rule, given: Any, block: int, f: int = 1, **more: Any) -> tuple[Any, Any, Any]:
    """One receiver: the rule at once, the rule in blocks, and what the latter says."""
    count = len(given)
    told: dict[str, Any] = {"weight": np.full((1, count), 1.0 / count), "f": np.array([f]), "receiver": np.array([0])}
    state = None if rule.init(given[:1]) is None else given[:1] + given.dtype.type(0.25)
    inbox = make_inbox(rule, given[:1].copy(), messages=given[1:].copy(), **told, **more)
    with np.errstate(all="ignore"):
        outcome, _ = rule.apply(inbox, state)
    own = given[0].copy()
    said = apply_streamed(
        rule, [own], list(given[1:]), [own], dtype=given.dtype, state=state, block=block, **told, **more
    )
    np.testing.assert_array_equal(said.present, inbox.present)
    np.testing.assert_array_equal(said.kept, outcome.kept)
    return outcome, own, said


@pytest.mark.parametrize("block", [7, 333, 512, 999, 1000, 4096])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_odd_blocks_change_nothing(block: int, dtype: str) -> None:
    for name in ("ios", "trimean", "geomed", "cc"):
        outcome, own, _ = both(bm.rule(name), models(dtype=dtype), block)
        if name in ("ios", "trimean"):
            np.testing.assert_array_equal(own, outcome.models[0])
        np.testing.assert_allclose(own, outcome.models[0], **CLOSE[dtype])


def test_blocks_of_one_number_change_nothing() -> None:
    outcome, own, _ = both(bm.rule("ios"), models(columns=5), 1)
    np.testing.assert_array_equal(own, outcome.models[0])


@pytest.mark.parametrize(("name", "options"), STREAMED)
def test_every_rule_that_streams_gives_what_it_gives_at_once(name: str, options: dict[str, Any]) -> None:
    rule = bm.rule(name, **options)
    for seed in range(3):
        outcome, own, said = both(rule, models(8, 300, "float64", seed), 128)
        np.testing.assert_allclose(own, outcome.models[0], rtol=1e-9, atol=1e-12)
        if outcome.coefficients is not None:
            np.testing.assert_allclose(said.coefficients, outcome.coefficients, rtol=1e-9, atol=1e-12)
        if rule.name in EXACT:
            np.testing.assert_array_equal(own, outcome.models[0])


def test_which_rules_stream() -> None:
    assert {"IOS", "TriMean", "CooMed", "GeoMed", "CC", "WeiMean", "Krum", "FABA"} <= {name for name, _ in STREAMED}
    given = models()
    with pytest.raises(ConfigError, match="rule UBAR cannot be computed in blocks"):
        bm.aggregate("ubar", given[0], given[1:], in_blocks=10)


@pytest.mark.parametrize("where", [0, 500, 999])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["ios", "trimean", "cc"])
def test_one_bad_number_in_one_block_silences_the_whole_message(name: str, bad: float, where: int) -> None:
    given = models()
    given[2, where] = bad
    outcome, own, said = both(bm.rule(name), given, 100)
    assert said.present[0].tolist() == [True, True, False, True, True, True]
    np.testing.assert_allclose(own, outcome.models[0], **CLOSE["float32"])


@pytest.mark.parametrize("size", [1e16, 1e29, 1e32, 1e38])
@pytest.mark.parametrize("name", ["ios", "trimean", "geomed", "weimean"])
def test_huge_numbers_in_one_block_scale_the_whole_message(name: str, size: float) -> None:
    given = models()
    given[3, 950] = size
    outcome, own, _ = both(bm.rule(name), given, 100)
    np.testing.assert_allclose(own, outcome.models[0], rtol=1e-5, atol=1e-6)


def test_missing_messages_are_silence() -> None:
    given = models()
    told: dict[str, Any] = {"weight": np.full((1, 6), 1.0 / 6), "f": np.array([1]), "receiver": np.array([0])}
    own = given[0].copy()
    messages = [given[1], None, *given[3:]]
    said = apply_streamed(bm.rule("ios"), [own], messages, [own], dtype=given.dtype, block=64, **told)
    assert not said.present[0, 2]
    with pytest.warns(bm.BadMessage):
        expected = bm.aggregate("ios", given[0], messages, f=1)
    np.testing.assert_array_equal(own, expected)


def test_too_few_messages_keep_the_own_model() -> None:
    given = models(2)
    _, own, said = both(bm.rule("trimean"), given, 64, present=np.array([[True, False]]), f=1)
    np.testing.assert_array_equal(own, given[0])
    assert said.coefficients is None


@pytest.mark.parametrize("name", ["ios", "trimean", "geomed", "cc"])
def test_all_workers_of_a_network_at_once(name: str) -> None:
    """Four receivers that hear each other, in place; one of them is far larger than the others."""
    rule, given = bm.rule(name), models(4, 777, "float64")
    given[3] *= 50.0
    index = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [3, 0, 1, 2]])
    told: dict[str, Any] = {
        "weight": np.full((4, 4), 0.25),
        "f": np.ones(4, np.int64),
        "receiver": np.arange(4),
        "index": index,
    }
    outcome, _ = rule.apply(make_inbox(rule, given.copy(), **told), rule.init(given))
    new = given.copy()
    apply_streamed(rule, list(new), [], list(new), dtype=np.float64, block=100, **told)
    np.testing.assert_allclose(new, outcome.models, rtol=1e-9)


def test_own_vectors_must_be_finite_and_of_one_length() -> None:
    given = models()
    given[0, 900] = np.nan
    with pytest.raises(ConfigError, match="own must be finite"):
        bm.aggregate("ios", given[0], list(given[1:]), f=1, in_blocks=100)
    with pytest.raises(ConfigError, match="same length, got 1000 and 3"):
        apply_streamed(
            bm.rule("ios"),
            [models()[0]],
            [np.zeros(3)],
            [models()[0]],
            weight=np.full((1, 2), 0.5),
            f=np.array([1]),
            receiver=np.array([0]),
            dtype=np.float32,
        )


def test_aggregate_in_blocks_is_aggregate() -> None:
    given = models()
    received = [*given[1:4], np.zeros(3), given[5]]
    for options in ({"f": 1}, {"f": 1, "weights": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]}, {"b": 0.2}):
        with pytest.warns(bm.BadMessage, match=r"\[3\]"):
            at_once = bm.aggregate("ios", given[0], received, **options)
        with pytest.warns(bm.BadMessage, match=r"\[3\]"):
            in_blocks = bm.aggregate("ios", given[0], received, in_blocks=64, **options)
        np.testing.assert_array_equal(in_blocks, at_once)


def test_aggregate_in_blocks_writes_where_it_is_told(tmp_path: Path) -> None:
    """From memory maps to a memory map: nothing of the vectors' size is in memory."""
    given = models(4, 300_000)
    maps = []
    for row, vector in enumerate(given):
        np.save(tmp_path / f"{row}.npy", vector)
        maps.append(np.load(tmp_path / f"{row}.npy", mmap_mode="r+"))
    expected = bm.aggregate("ios", given[0], given[1:], f=1)
    bm.aggregate("ios", given[0][:9], given[1:, :9], f=1, in_blocks=8)
    tracemalloc.start()
    made = bm.aggregate("ios", maps[0], maps[1:], f=1, in_blocks=10_000, out=maps[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made is maps[0] and peak < 4 * 5 * 10_000 * 4 < given[0].nbytes
    np.testing.assert_array_equal(np.load(tmp_path / "0.npy"), expected)


def test_options_of_blocks_that_make_no_sense_are_errors() -> None:
    given = models()
    with pytest.raises(ConfigError, match="in_blocks must be a whole number of at least 1"):
        bm.aggregate("ios", given[0], given[1:], in_blocks=0)
    with pytest.raises(ConfigError, match="out must be like own"):
        bm.aggregate("ios", given[0], given[1:], in_blocks=10, out=np.zeros(3))
    with pytest.raises(ConfigError, match="out needs in_blocks"):
        bm.aggregate("ios", given[0], given[1:], out=given[0])


def test_tensors_stream_in_place() -> None:
    """Tensors of any float type; what is not held by NumPy is converted block by block."""
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        given = torch.tensor(models(5), dtype=dtype)
        expected = bm.aggregate("ios", given[0], list(given[1:]), f=1)
        own = given[0].clone()
        assert bm.aggregate("ios", own, list(given[1:]), f=1, in_blocks=77, out=own) is own
        assert torch.equal(own, expected) and own.dtype == dtype
        assert torch.equal(bm.aggregate("ios", given[0], list(given[1:]), f=1, in_blocks=77), expected)


def test_a_module_is_aggregated_in_its_own_memory() -> None:
    """Blocks cross the borders of parameters; tied weights count once; odd messages are silence."""
    torch = pytest.importorskip("torch")

    class Tied(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self, seed: int) -> None:
            super().__init__()
            torch.manual_seed(seed)
            self.embedding, self.inner = torch.nn.Embedding(7, 5), torch.nn.Linear(5, 5)
            self.last = torch.nn.Linear(5, 7, bias=False)
            self.last.weight = self.embedding.weight
            self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)

    received: list[Any] = [Tied(seed).state_dict() for seed in range(1, 5)]
    received[1]["inner.bias"][2] = torch.nan
    received.append({"inner.bias": torch.zeros(5)})
    for block in (1, 3, 8, 64, 1000):
        at_once, in_blocks = Tied(0), Tied(0)
        held = in_blocks.embedding.weight.data_ptr()
        with pytest.warns(bm.BadMessage):
            expected = bm.torch.aggregate("ios", at_once, received, f=1)
        with pytest.warns(bm.BadMessage):
            assert bm.torch.aggregate("ios", in_blocks, received, f=1, in_blocks=block) == expected == [1, 4]
        torch.testing.assert_close(bm.torch.flatten(in_blocks), bm.torch.flatten(at_once), rtol=1e-6, atol=1e-6)
        assert in_blocks.embedding.weight.data_ptr() == held and in_blocks.last.weight is in_blocks.embedding.weight
    with pytest.raises(ConfigError, match="in_blocks must be a whole number"):
        bm.torch.aggregate("ios", Tied(0), received, in_blocks=0)
    with pytest.raises(ConfigError, match="contiguous parameters of one dtype"):
        bm.torch.aggregate("ios", torch.nn.Sequential(Tied(0), Tied(1).double()), [], in_blocks=9)


def test_a_rule_with_memory_starts_as_it_does_at_once() -> None:
    given = models(dtype="float64")
    memory: dict[str, Any] = {"tau": 5.0, "centre": "memory"}
    for centre in (None, given[2] + 0.1):
        more = memory if centre is None else {"tau": 5.0}
        expected = bm.aggregate("cc", given[0], given[1:], **more, **({} if centre is None else {"centre": centre}))
        rule = bm.rule("cc", **memory)
        made = bm.aggregate(rule, given[0], given[1:], in_blocks=64, centre=centre)
        np.testing.assert_allclose(made, expected, rtol=1e-12)


def test_ranks_of_messages_beyond_reach_are_those_of_their_smaller_copies() -> None:
    given = models()
    given[3, 950] = 1e35
    outcome, own, _ = both(bm.rule("trimean"), given, 100, f=0)
    np.testing.assert_allclose(own, outcome.models[0], rtol=1e-6, atol=1e-6)
    assert own.max() < 1e30


@pytest.mark.parametrize("name", ["krum", "ios", "trimean"])
def test_a_worker_that_hears_nobody_keeps_its_model_bit_for_bit(name: str) -> None:
    """Others of the network go on, and the centre of all is not its own model."""
    rule, given = bm.rule(name), models(5, 777)
    index = np.array([[r, *(m for m in range(5) if m != r)] for r in range(5)])
    present = np.ones((5, 5), bool)
    present[2, 1:] = False
    told: dict[str, Any] = {
        "weight": np.full((5, 5), 0.2),
        "f": np.ones(5, np.int64),
        "receiver": np.arange(5),
        "index": index,
        "present": present,
    }
    outcome, _ = rule.apply(make_inbox(rule, given.copy(), **told), rule.init(given))
    new = given.copy()
    said = apply_streamed(rule, list(new), [], list(new), dtype=np.float32, block=100, **told)
    np.testing.assert_array_equal(said.kept, outcome.kept)
    assert said.kept[2] == (name == "krum")
    np.testing.assert_array_equal(new[2], outcome.models[2])
    np.testing.assert_allclose(new, outcome.models, **CLOSE["float32"])


@pytest.mark.parametrize(
    ("rule", "outer", "most"), [("ios", "none", 0.1), ("ios", "nesterov", 1.5), ("cc", "none", 0.1)]
)
def test_a_round_of_the_simulator_adds_no_copy_of_the_models(rule: str, outer: str, most: float) -> None:
    """Beyond models and half steps: nothing of their size for a choice of weights, the new models for an outer step."""
    run = bm.prepare(
        problem={"name": "quadratic", "dimension": 500_000},
        network={"name": "complete", "n": 5, "byzantine": [4]},
        rule=rule,
        attack="sign-flipping",
        rounds=3,
        local={"outer": outer},
    )
    run.step()
    run.step()
    tracemalloc.start()
    run.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * run.models.nbytes
