"""The network file: what all peers of a run agree on, in YAML. It holds no secret and does not say who lies.

    peers:                               # one entry per peer, ids 0 to n - 1
      - {id: 0, address: "10.0.0.1:7000", public_key: "..."}
    topology: {name: two-castle, k: 6}   # or edges: [[0, 1], ...]
    rule: {name: ios}
    f: 2                                 # bound on lying neighbours: one number, or one per id
    problem: {name: softmax, partition: one-class}
    step: {name: inverse-sqrt, a: 0.9, b: 1}
    local: {decay: 0.01}
    rounds: 2000
    plugins: [mine.py]                   # scripts beside this file, or modules, with rules of one's own

Unknown keys are errors. `share` of a peer says which part of the problem's data it holds (default: its id), `shares`
into how many parts they are split (default: the number of peers).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from byzmesh.errors import ConfigError, nearest
from byzmesh.files import write
from byzmesh.networks import Network
from byzmesh.peers.codecs import codec
from byzmesh.peers.identity import is_public_key
from byzmesh.peers.rounds import Patience
from byzmesh.peers.transport import Remote
from byzmesh.plugins import load_plugins
from byzmesh.problems import Problem, problems
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.training.local import LocalOptions
from byzmesh.training.metrics import Metric, canonical_measures, metrics
from byzmesh.training.schedules import Schedule, schedule


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PeerEntry(_Section):
    """One peer: who it is, where it listens, which share of the data it holds."""

    id: int = Field(ge=0, lt=65535)
    address: str
    public_key: str
    share: int | None = Field(None, ge=0)


class Timeouts(_Section):
    """Seconds; see `byzmesh.peers.rounds.Patience`. `linger`: how long a finished peer still serves slower ones."""

    round: float = 5.0
    start: float = 30.0
    grace: float = 0.01
    start_grace: float = 3.0
    linger: float = 10.0


class NetworkFile(_Section):
    """A validated network file."""

    name: str = "network"
    peers: list[PeerEntry] = Field(min_length=1)
    topology: str | dict[str, Any] | None = None
    edges: list[tuple[int, int]] | None = None
    weights: str | list[list[float]] = "metropolis-hastings"
    rule: str | dict[str, Any] = "ios"
    f: int | dict[int, int] = 0
    problem: str | dict[str, Any] = "softmax"
    shares: int | None = Field(None, ge=1)
    step: float | str | dict[str, Any] = "inverse-sqrt"
    """Step-size schedule."""
    local: dict[str, Any] = Field(default_factory=dict)
    """Local part of a round: options of `training.local.LocalOptions`."""
    rounds: int = Field(1000, ge=1)
    seed: int = 0
    dtype: str = "float32"
    wire: str = "raw"
    evaluate_every: int = Field(100, ge=1)
    measure: list[str] = Field(default_factory=list)
    """Metrics to record beside what the task measures: those that a peer can compute from its own model."""
    checkpoint_every: int = Field(100, ge=1)
    timeouts: Timeouts = Timeouts()
    plugins: list[str] = Field(default_factory=list)
    """Scripts, relative to the file's folder, or modules: `load_network` has imported them."""

    @cached_property
    def network(self) -> Network:
        """Graph and weights; nobody in it is known to lie."""
        if (self.topology is None) == (self.edges is None):
            raise ConfigError("network file: give exactly one of 'topology' and 'edges'")
        if self.edges is not None:
            graph = Network.from_edges(self.edges, len(self.peers), weights=self.weights, name=self.name)
        else:
            graph = Network.from_spec(self.topology, byzantine="none", weights=self.weights, seed=self.seed)
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
        return problems.build(self.problem, **changes)

    @cached_property
    def schedule(self) -> Schedule:
        """Round -> step size."""
        return schedule(self.step)

    @cached_property
    def made_local(self) -> LocalOptions:
        """How a peer goes from its model to its half step."""
        return LocalOptions.of(self.local)

    @property
    def patience(self) -> Patience:
        """How long a peer waits."""
        times = self.timeouts
        return Patience(times.round, times.start, times.grace, times.start_grace)

    @cached_property
    def run(self) -> int:
        """Hash of what the peers must agree on (not addresses, waiting times, or how long to go on)."""
        agreed = self.model_dump(
            mode="json",
            exclude={"name", "rounds", "evaluate_every", "measure", "checkpoint_every", "timeouts", "plugins", "peers"},
        )
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
                    f"measure: {metric.name} needs every worker's model, a peer has its own only; take it out"
                )
        return made

    def entry(self, peer: int) -> PeerEntry:
        """The entry of a peer."""
        if not 0 <= peer < len(self.peers):
            raise ConfigError(f"network file: no peer {peer}; ids are 0 to {len(self.peers) - 1}")
        return self.peers[peer]

    def bound(self, peer: int) -> int:
        """f of a peer."""
        return self.f if isinstance(self.f, int) else self.f[peer]

    def share(self, peer: int) -> int:
        """Row of the problem that a peer holds."""
        share = self.entry(peer).share
        return peer if share is None else share

    def remotes(self, peer: int) -> dict[int, Remote]:
        """A peer's neighbours: where they are and who."""
        return {int(j): Remote(self.peers[j].address, self.peers[j].public_key) for j in self.network.neighbours(peer)}

    def check(self) -> NetworkFile:
        """Itself, after checking everything that could stop a peer later."""
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
        _ = self.made_problem, self.made_metrics, self.patience, self.schedule, self.made_local
        return self


def _check_address(entry: PeerEntry) -> None:
    host, _, port = entry.address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"network file: address of peer {entry.id} must be host:port, got {entry.address!r}")


def network_file(content: Mapping[str, Any]) -> NetworkFile:
    """A network file from its content, checked.

    >>> network_file({"peers": [], "edges": []})
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: network file: peers: List should have at least 1 item after validation, not 0
    """
    try:
        return NetworkFile.model_validate(content).check()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = _fields(first["loc"])
            raise ConfigError(f"network file: unknown key {where!r}: {nearest(str(first['loc'][-1]), known)}") from None
        raise ConfigError(f"network file: {where}: {first['msg']}") from None


def _fields(place: tuple[int | str, ...]) -> list[str]:
    sections: dict[str, type[_Section]] = {"peers": PeerEntry, "timeouts": Timeouts}
    section = sections.get(str(place[0]), NetworkFile) if len(place) > 1 else NetworkFile
    return list(section.model_fields)


def load_network(path: str | Path) -> NetworkFile:
    """The network file at `path`."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read network file {path}: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a mapping with peers, rule, problem, ...; see docs/peers.md")
    plugins = content.get("plugins")
    load_plugins(plugins if isinstance(plugins, list) else [], Path(path).parent)
    return network_file(content)


def save_network(file: NetworkFile, path: str | Path) -> Path:
    """Write a network file; defaults are left out."""
    import yaml

    content = file.model_dump(mode="json", exclude_defaults=True)
    return write(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
