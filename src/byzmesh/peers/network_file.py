"""The network file: what all peers of a run agree on, in YAML. It contains no secrets and does not say who lies.

    peers:                               # one entry per peer, ids 0 to n - 1
      - {id: 0, address: "10.0.0.1:7000", public_key: "..."}
    topology: {name: two-castle, k: 6}   # or edges: [[0, 1], ...]
    rule: {name: ios}
    f: 2                                 # bound on lying neighbours: one number, or one per id
    problem: {name: softmax, partition: one-class}
    step: {name: inverse-sqrt, a: 0.9, b: 1}
    local: {decay: 0.01}
    rounds: 2000
    plugins: [mine.py]                   # scripts beside this file, or modules, with your own rules

How to train (problem, rule, rounds, evaluate_every, step, local, seed, dtype, threads, measure, labels, plugins) is
written as in the config of a run, with the same defaults. Unknown keys are errors. `share` of a peer says which part of
the problem's data it has (default: its id), `shares` into how many parts they are split (default: the number of peers).
File names are relative to the folder of this file, as in a config.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from byzmesh.config.paths import anchor_problem, problem_as_written
from byzmesh.config.schema import TRAINING, TrainingConfig, resolve_training, validated
from byzmesh.config.yaml import read_yaml
from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.files import CHECKPOINT_SECONDS, write
from byzmesh.networks import Network
from byzmesh.peers.codecs import codec
from byzmesh.peers.identity import is_public_key
from byzmesh.peers.rounds import Patience
from byzmesh.peers.transport import Remote
from byzmesh.problems import Problem, problems
from byzmesh.renamed import as_stored
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.training.local import LocalOptions
from byzmesh.training.metrics import Metric, canonical_measures, metrics
from byzmesh.training.schedules import Schedule, schedule
from byzmesh.training.variance import not_sampled

_NOT_AGREED = {
    *("name", "peers", "rounds", "evaluate_every", "measure", "checkpoint_seconds", "timeouts"),
    *("threads", "labels", "plugins"),
}
"""Keys in which the files of two peers of a run may differ; in `peers`, everything except public keys and shares."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PeerEntry(_Section):
    """One peer: its key, where it listens, and which part of the data it gets."""

    id: int = Field(ge=0, lt=65535)
    address: str
    public_key: str
    share: int | None = Field(None, ge=0)


class Timeouts(_Section):
    """Seconds; see `byzmesh.peers.rounds.Patience`.

    linger  how long a finished peer still serves slower ones
    alone   after how long without any neighbour a peer gives up
    """

    round: float = 5.0
    start: float = 30.0
    grace: float = 0.01
    start_grace: float = 3.0
    linger: float = 10.0
    alone: float = 300.0


class NetworkFile(TrainingConfig):
    """A validated network file with a canonical training part; created by `network_file` or `load_network`."""

    model_config = ConfigDict(frozen=True, strict=False)

    name: str = "network"
    nonce: str = ""
    """Tells two runs of otherwise equal files apart; `byzmesh peers plan` draws one."""
    peers: list[PeerEntry] = Field(min_length=1)
    topology: str | dict[str, Any] | None = None
    edges: list[tuple[int, int]] | None = None
    weights: str | list[list[float]] = "metropolis-hastings"
    f: int | dict[int, int] = 1
    shares: int | None = Field(None, ge=1)
    rounds: int = Field(ge=1)
    wire: str = "raw"
    checkpoint_seconds: float = Field(CHECKPOINT_SECONDS, gt=0)
    """How often a peer writes its state, to continue from."""
    timeouts: Timeouts = Timeouts()

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @property
    def folder(self) -> Path:
        """The base of relative file names."""
        return self._folder

    @cached_property
    def network(self) -> Network:
        """Graph and weights; nobody in it is known to lie."""
        if (self.topology is None) == (self.edges is None):
            raise ConfigError("network file: give exactly one of 'topology' and 'edges'")
        if self.edges is not None:
            graph = Network.from_edges(self.edges, len(self.peers), weights=self.weights, name=self.name)
        else:
            graph = Network.from_spec(
                self.topology, byzantine="none", weights=self.weights, seed=self.seed, folder=self._folder
            )
        if graph.n != len(self.peers):
            raise ConfigError(f"network file: {len(self.peers)} peers for a graph of {graph.n} nodes; make them equal")
        return graph

    @cached_property
    def made_rule(self) -> Rule:
        """The aggregation rule."""
        return make_rule(self.rule)

    @cached_property
    def made_problem(self) -> Problem:
        """The problem, not yet bound to data."""
        return self.problem_with()

    def problem_with(self, **changes: Any) -> Problem:
        """The problem with other options."""
        return problems.build(anchor_problem({**self.problem, **changes}, self._folder))

    @cached_property
    def schedule(self) -> Schedule:
        """Round -> step size."""
        return schedule(self.step)

    @cached_property
    def made_local(self) -> LocalOptions:
        """How a peer gets from its model to its half step."""
        return LocalOptions.of(self.local)

    @property
    def patience(self) -> Patience:
        """How long a peer waits."""
        times = self.timeouts
        return Patience(times.round, times.start, times.grace, times.start_grace)

    @cached_property
    def run(self) -> int:
        """Hash of what the peers must agree on (not addresses, timeouts, or the number of rounds)."""
        agreed = as_stored(self.model_dump(mode="json", exclude=_NOT_AGREED))
        if not self.nonce:
            del agreed["nonce"]
        agreed["peers"] = {entry.id: [entry.public_key, entry.share] for entry in self.peers}
        text = json.dumps(agreed, sort_keys=True, default=str)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    @cached_property
    def made_metrics(self) -> list[Metric]:
        """The metrics to measure."""
        made = [metrics.build(name) for name in canonical_measures(self.measure)]
        for metric in made:
            if not metric.alone:
                raise ConfigError(
                    f"network file measure: {metric.name} needs more than a peer's own model and data; take it out"
                )
        return made

    def network_spec(self, byzantine: Sequence[int] = ()) -> dict[str, Any]:
        """The graph as in the config of a run, with these liars."""
        graph = self.network
        edges = np.argwhere(np.triu(graph.adjacency)).tolist()
        spec = {"label": self.name, "edges": edges, "n": graph.n, "weights": self.weights}
        return {**spec, "byzantine": list(byzantine)}

    def entry(self, peer: int) -> PeerEntry:
        """The entry of a peer."""
        if not 0 <= peer < len(self.peers):
            raise ConfigError(f"network file: no peer {peer}; ids are 0 to {len(self.peers) - 1}")
        return self.peers[peer]

    def bound(self, peer: int) -> int:
        """f of a peer."""
        return self.f if isinstance(self.f, int) else self.f[peer]

    def share(self, peer: int) -> int:
        """The row of the problem's task that belongs to a peer."""
        share = self.entry(peer).share
        return peer if share is None else share

    def remotes(self, peer: int) -> dict[int, Remote]:
        """A peer's neighbours: their addresses and keys."""
        return {int(j): Remote(self.peers[j].address, self.peers[j].public_key) for j in self.network.neighbours(peer)}

    def check(self) -> NetworkFile:
        """This file, after checking everything that could stop a peer later."""
        ids = [entry.id for entry in self.peers]
        if ids != list(range(len(ids))):
            raise ConfigError(f"network file: peers must have the ids 0 to {len(ids) - 1} in order, got {ids}")
        for entry in self.peers:
            if not is_public_key(entry.public_key):
                raise ConfigError(f"network file: public_key of peer {entry.id} is not a key; see byzmesh keygen")
            _check_address(entry)
            if self.share(entry.id) >= (self.shares or len(ids)):
                raise ConfigError(f"network file: share {self.share(entry.id)} of peer {entry.id} is not below shares")
        for what in ("address", "public_key"):
            values = [getattr(entry, what) for entry in self.peers]
            for value in {value for value in values if values.count(value) > 1}:
                raise ConfigError(f"network file: {what} {value} is given to two peers; each needs its own")
        codec(self.wire)
        if isinstance(self.f, dict) and sorted(self.f) != ids:
            raise ConfigError("network file: f must be one number or name every peer")
        bounds = np.array([self.bound(peer) for peer in ids], np.int64)
        if bounds.min() < 0:
            raise ConfigError(f"network file: f must be at least 0, got {bounds.min()}")
        check_feasible(self.made_rule, bounds, self.network.degree, np.arange(len(ids)))
        if self.made_local.variance != "none" and self.made_problem.sampled is False:
            raise not_sampled(self.made_local.variance)
        _ = self.made_metrics, self.patience, self.schedule, self.made_local
        return self


def _check_address(entry: PeerEntry) -> None:
    host, _, port = entry.address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"network file: address of peer {entry.id} must be host:port, got {entry.address!r}")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ConfigError(
            f"network file: address of peer {entry.id} must have an IPv6 host in brackets, [{host}]:{port}, "
            f"got {entry.address!r}"
        )


def network_file(content: Mapping[str, Any], folder: str | Path = ".") -> NetworkFile:
    """A network file from its content, checked.

    folder  base of relative file names

    >>> network_file({"peers": [], "edges": []})
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: network file peers: list should have at least 1 item after validation, not 0, got []
    """
    if "checkpoint_every" in content:
        raise ConfigError(
            "network file: checkpoint_every counted rounds and is gone; write checkpoint_seconds instead, e.g. "
            f"checkpoint_seconds: {CHECKPOINT_SECONDS:g}, or leave it out"
        )
    _known_keys("network file", content, NetworkFile)
    for entry in content["peers"] if isinstance(content.get("peers"), list) else ():
        _known_keys("network file peers", entry, PeerEntry)
    _known_keys("network file timeouts", content.get("timeouts"), Timeouts)
    given = {key: value for key, value in content.items() if value is not None}
    training = resolve_training(given, folder, where="network file")
    plugins = given.get("plugins", [])
    written = {
        "problem": problem_as_written(training["problem"], given.get("problem")),
        "plugins": [plugins] if isinstance(plugins, str) else plugins,
    }
    made = validated(NetworkFile, {**given, **training, **written}, "network file")
    made._folder = Path(folder).absolute()
    return made.check()


def _known_keys(where: str, content: Any, section: type[BaseModel]) -> None:
    for key in content if isinstance(content, Mapping) else ():
        if key not in section.model_fields:
            raise UnknownOption(f"{where} has no key {key!r}: {nearest(str(key), section.model_fields)}")


def is_network_file(path: str | Path) -> bool:
    """Whether a YAML file describes peers, not a simulation."""
    return Path(path).is_file() and "peers" in read_yaml(path, ids=True)


def load_network(path: str | Path) -> NetworkFile:
    """The network file at `path`."""
    return network_file(read_yaml(path, ids=True, way_out="give the path of a network file"), Path(path).parent)


def save_network(file: NetworkFile, path: str | Path) -> Path:
    """Write a network file to its folder: what was given, then how to train, in full."""
    import yaml

    given = file.model_dump(mode="json", exclude_unset=True)
    content = dict(sorted(given.items(), key=lambda item: item[0] in TRAINING))
    return write(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
