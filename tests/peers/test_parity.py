"""One config, trained by the simulator and by peers: the same models, whatever the local part of a round is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.config.schema import resolve
from byzmesh.networks import Network
from byzmesh.peers.identity import keygen, load_public
from byzmesh.peers.network_file import NetworkFile, load_network, save_network
from byzmesh.peers.plan import addresses, plan_network
from byzmesh.problems.base import KnowsItsData
from byzmesh.sweeps.build import build
from byzmesh.training.checkpoint import load_checkpoint
from tests.peers.worlds import PATIENT, train

PEERS, ROUNDS = 5, 8
LOCAL: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"momentum": "heavy-ball"},
    "several steps": {"steps": 3},
    "clip": {"clip": 0.5},
    "saga": {"variance": "saga"},
    "lsvrg": {"variance": "lsvrg", "refresh": 0.3},
    "all together": {"momentum": "exponential", "steps": 2, "clip": 1.0, "variance": "saga"},
    "optimizer": {"decay": 0, "optimizer": "AdamW", "steps": 2, "accumulate": 2, "outer": "nesterov"},
}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    keygen(folder, PEERS)
    return folder


def config(samples: Path, variant: str, **more: Any) -> dict[str, Any]:
    return resolve(
        {
            "problem": {"name": "softmax", "dataset": str(samples), "batch": 4, "partition": "one-class"},
            "network": {"name": "complete", "n": PEERS},
            "rule": "ios",
            "f": 1,
            "rounds": ROUNDS,
            "dtype": "float64",
            "local": {"decay": 0.01, **LOCAL[variant]},
            **more,
        }
    )


def planned(run: dict[str, Any], keys: Path, folder: Path) -> NetworkFile:
    """The network file as `byzmesh peers plan` writes it and a peer reads it."""
    where = addresses("127.0.0.1:7000", PEERS)
    file = plan_network(
        run, Network.from_spec(run["network"]), where, load_public(keys), folder, timeouts=PATIENT | {"linger": 0.1}
    )
    return load_network(save_network(file, folder / "network.yaml"))


@pytest.mark.parametrize("variant", LOCAL)
def test_peers_train_as_the_simulator_does(samples: Path, keys: Path, tmp_path: Path, variant: str) -> None:
    run = config(samples, variant)
    models = train(planned(run, keys, tmp_path), keys, tmp_path / "out")
    simulated = build(run).run().models
    np.testing.assert_allclose(models, simulated, rtol=1e-9, atol=1e-10)
    assert np.abs(models - build(config(samples, variant, rounds=0)).run().models).max() > 1e-3


def test_peers_see_their_own_data(samples: Path, keys: Path, tmp_path: Path) -> None:
    """With one class per worker a peer's accuracy on its own data is not that on another's."""
    run = config(samples, "plain", measure=["own_accuracy"])
    models = train(planned(run, keys, tmp_path), keys, tmp_path / "out")
    task = build(run).task
    assert isinstance(task, KnowsItsData)
    own = [task.own_accuracy(models[[peer]], np.array([peer]))[0] for peer in range(PEERS)]
    lines = [(tmp_path / "out" / f"peer{peer}.jsonl").read_text().splitlines()[-1] for peer in range(PEERS)]
    assert [json.loads(line)["own_accuracy"] for line in lines] == pytest.approx(own)
    assert len({round(value, 6) for value in own}) > 1


@pytest.mark.parametrize("variant", LOCAL)
def test_restarted_peers_end_where_uninterrupted_ones_do(
    samples: Path, keys: Path, tmp_path: Path, variant: str
) -> None:
    straight = train(planned(config(samples, variant), keys, tmp_path), keys, tmp_path / "straight")
    train(planned(config(samples, variant, rounds=3), keys, tmp_path), keys, tmp_path / "out")
    arrays, metadata = load_checkpoint(tmp_path / "out" / "peer0.ckpt")
    assert metadata["round"] == 3
    if "variance" in LOCAL[variant]:
        assert any(name.startswith("gradients/") and values.any() for name, values in arrays.items())
    resumed = train(planned(config(samples, variant), keys, tmp_path), keys, tmp_path / "out")
    np.testing.assert_array_equal(resumed, straight)
