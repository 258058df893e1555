"""The library's front door: names, arguments and the messages a user sees."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.errors import ConfigError, InfeasibleBound, UnknownName, UnknownOption


def test_every_public_name_exists() -> None:
    for name in bm.__all__:
        assert getattr(bm, name) is not None
    assert list(bm.__all__) == sorted(bm.__all__)


def test_type_checkers_and_python_find_a_name_in_the_same_module() -> None:
    typed = {
        alias.name: node.module
        for node in ast.walk(ast.parse(Path(bm.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("byzmesh.")
        for alias in node.names
    }
    assert typed.pop("__version__") == "byzmesh._version"
    assert typed == {name: f"byzmesh.{home}" for name, home in bm._HOME.items()}
    assert set(bm.__all__) == {*typed, "__version__", "torch"}


def run_fresh(code: str) -> str:
    """What some code prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light() -> None:
    heavy = ("numpy", "numba", "networkx", "scipy", "matplotlib", "torch")
    assert run_fresh(f"import byzmesh, sys; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_rooms_are_there_without_an_import_of_their_own() -> None:
    rooms = sorted(path.parent.name for path in Path(bm.__file__).parent.glob("*/__init__.py"))
    assert {"rules", "theory", "cli"} < set(rooms)
    for room in rooms:
        assert bm.__getattr__(room) is sys.modules[f"byzmesh.{room}"]
    assert not hasattr(bm, "rulez") and not hasattr(bm, "__wrapped__")


def test_modules_stay_modules() -> None:
    """`import byzmesh.rules.aggregate as a` gives that module, for every module, whatever was used before."""
    code = """
import importlib, pkgutil, sys, byzmesh as bm
for name in bm.__all__:
    getattr(bm, name)
for found in pkgutil.walk_packages(bm.__path__, "byzmesh."):
    module = importlib.import_module(found.name)
    here = bm
    for part in found.name.split(".")[1:]:
        here = getattr(here, part)
    assert here is module is sys.modules[found.name], (found.name, here)
"""
    run_fresh(code)


def test_listing_says_which_f_a_rule_tolerates() -> None:
    listed = {item.name: item for item in bm.list_rules()}
    assert listed["TriMean"].uses_f and "2f < d" in listed["TriMean"].feasible
    assert not listed["WeiMean"].uses_f
    assert "f < d" in repr(bm.list_rules())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: bm.aggregate("oss", np.zeros(2), np.zeros((3, 2))), UnknownName, ["unknown rule 'oss'", "'IOS'"]),
        (lambda: bm.aggregate("cc", np.zeros(2), np.zeros((3, 2)), ta=1), UnknownOption, ["rule CC", "'ta'", "'tau'"]),
        (lambda: bm.aggregate("cc", np.zeros(2), np.zeros((3, 2)), tau=-1), ConfigError, ["tau", "positive", "-1"]),
        (lambda: bm.aggregate("ios", np.zeros(2), np.zeros((3, 2)), f=3), InfeasibleBound, ["f = 3", "IOS", "is 2"]),
        (
            lambda: bm.aggregate("tm", np.zeros(2), np.zeros((4, 2)), f=2),
            InfeasibleBound,
            ["TriMean", "4 neighbours", "is 1"],
        ),
        (
            lambda: bm.aggregate("krum", np.zeros(2), np.zeros((1, 2)), f=0),
            InfeasibleBound,
            ["Krum", "more neighbours"],
        ),
        (lambda: bm.aggregate("ios", np.zeros(2), np.zeros((3, 5))), ConfigError, ["received", "(d, 2)", "(3, 5)"]),
        (lambda: bm.aggregate("ios", np.zeros((2, 2)), np.zeros((3, 2))), ConfigError, ["own", "(2, 2)", "flatten"]),
        (lambda: bm.aggregate("ios", np.zeros(2), np.zeros((3, 2)), f=-1), ConfigError, ["f must be", "-1"]),
        (lambda: bm.aggregate("ios", np.zeros(2), np.zeros((3, 2)), [0.5, 0.5]), ConfigError, ["weights", "4 entries"]),
        (
            lambda: bm.aggregate("ios", np.zeros(2), np.zeros((1, 2)), [0.5, 0.7], 0),
            ConfigError,
            ["weights", "sum to 1"],
        ),
        (lambda: bm.aggregate("ios", np.array([np.nan, 0]), np.zeros((3, 2))), ConfigError, ["own must be finite"]),
        (lambda: bm.aggregate("simrew", np.zeros(2), np.zeros((3, 2))), ConfigError, ["SimRew", "previous="]),
        (lambda: bm.aggregate("ubar", np.zeros(2), np.zeros((3, 2))), ConfigError, ["UBAR", "loss="]),
        (lambda: bm.aggregate("zeno", np.zeros(2), np.zeros((3, 2))), ConfigError, ["Zeno", "loss="]),
        (
            lambda: bm.aggregate("ios", torch.zeros(2, dtype=torch.int32), torch.zeros(3, 2)),
            ConfigError,
            ["own", "int32"],
        ),
        (lambda: bm.aggregate(cast(Any, 3), np.zeros(2), np.zeros((3, 2))), ConfigError, ["rule"]),
        (lambda: bm.network(np.ones((9, 9))), ConfigError, ["network", "from_adjacency", "got array([[1., 1.", " ..."]),
        (lambda: bm.problem("softmax", batch=[1] * 99), ConfigError, ["batch", "got [1, 1,", " ..."]),
    ],
)
def test_mistakes_are_named_in_one_line(call: object, error: type[Exception], words: list[str]) -> None:
    with pytest.raises(error) as caught:
        call()  # type: ignore[operator]
    message = str(caught.value)
    assert "\n" not in message and len(message) < 200
    for word in words:
        assert word in message


def test_parts_show_the_call_that_makes_them() -> None:
    for part in (bm.rule("cc", tau=0.5), bm.attack("ipm"), bm.problem("quadratic")):
        assert repr(eval(f"bm.{part!r}")) == repr(part)


def test_infeasible_bound_names_the_worker_of_the_network() -> None:
    network = bm.network("paper/octopus")
    models = np.zeros((10, 2))
    with pytest.raises(InfeasibleBound) as caught:
        bm.aggregate_all("trimean", network, models, f=1)
    assert caught.value.worker == 8 and caught.value.largest == 0


def test_bad_messages_are_silence_and_reported() -> None:
    own = np.zeros(3)
    good = [np.ones(3), 2 * np.ones(3), 3 * np.ones(3)]
    with pytest.warns(bm.BadMessage, match=r"\[1, 3, 4\]"):
        out = bm.aggregate("ios", own, [good[0], None, good[1], np.ones(4), np.full(3, np.nan), good[2]], f=1)
    weights = np.array([4, 1, 1, 1]) / 7  # three lost weights went to the receiver itself
    np.testing.assert_allclose(out, bm.aggregate("ios", own, good, weights, f=1))


def test_silence_over_a_network_is_reported() -> None:
    network = bm.network("paper/two-castle")
    models = np.random.default_rng(0).normal(size=(10, 3))
    out = bm.aggregate_all("ios", network, models, bm.forge("nan", network, models))
    assert (0, 7) in out.silent and (0, 9) in out.silent and (0, 1) not in out.silent
    np.testing.assert_allclose(out.models, bm.aggregate_all("ios", network, models, None).models)


def test_huge_lies_in_float32_do_not_make_nan() -> None:
    network = bm.network("paper/two-castle")
    models = np.random.default_rng(0).normal(size=(10, 30)).astype(np.float32)
    forged = bm.forge("huge", network, models)
    for listed in bm.list_rules():
        if listed.name in ("UBAR", "Zeno", "half-and-half"):
            continue
        out = bm.aggregate_all(listed.name, network, models, forged, previous=models * 0.9)
        assert np.isfinite(out.models).all(), listed.name


def test_arrays_off_the_host_take_the_array_api_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU tensor would go through, with CPU tensors: the same results as NumPy."""
    from byzmesh.rules import interop as arrays

    random = np.random.default_rng(2)
    own, received = random.normal(size=13), random.normal(size=(8, 13))
    want = {
        name: bm.aggregate(name, own, received, f=1)
        for name in ("ios", "krum", "geomed", "cc", "weimean", "nna", "coomed", "trimean", "meamed")
    }
    plain = arrays.Bridge.__init__

    def elsewhere(self: arrays.Bridge, like: object, name: str) -> None:
        plain(self, like, name)
        self.here = False

    monkeypatch.setattr(arrays.Bridge, "__init__", elsewhere)
    for name, expected in want.items():
        got = bm.aggregate(name, torch.from_numpy(own), torch.from_numpy(received), f=1)
        assert isinstance(got, torch.Tensor)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=name)


def test_half_precision_and_gradients_are_accepted() -> None:
    own = torch.zeros(4, dtype=torch.bfloat16, requires_grad=True)
    out = bm.aggregate("ios", own, torch.ones(3, 4, dtype=torch.bfloat16), f=1)
    assert out.dtype == torch.bfloat16 and not out.requires_grad
    assert bm.aggregate("ios", np.zeros(2, np.int64), np.ones((3, 2)), f=0).dtype == np.float64


def test_dense_and_block_paths_agree() -> None:
    """A large sparse network takes the block path, the same inboxes in a small pool the full Gram matrix."""
    network = bm.network("k-regular", n=60, k=3, byzantine=4, seed=1)
    models = np.random.default_rng(1).normal(size=(56, 40)).astype(np.float32)
    forged = bm.forge("isolation", network, models)
    out = bm.aggregate_all("ios", network, models, forged, f=1)
    for row, worker in enumerate(network.honest[:10]):
        near = network.neighbours(int(worker))
        rows = {int(node): line for line, node in enumerate(network.honest)}
        received = np.array([models[rows[int(m)]] if int(m) in rows else forged[int(m), int(worker)] for m in near])
        alone = bm.aggregate("ios", models[row], received, network.layout.weight[row, : len(near) + 1], f=1)
        np.testing.assert_allclose(out.models[row], alone, rtol=1e-4, atol=1e-4)
