"""The network file: what all peers of a run agree on, in YAML. It contains no secrets and does not say who lies.

    peers:                               # one entry per peer, in the order of ids
      - {id: 0, address: "10.0.0.1:7000", public_key: "..."}
    topology: {name: two-castle, k: 6}   # or edges: [[0, 1], ...]
    rule: {name: ios}
    f: 2                                 # bound on lying neighbours: one number, or one per id
    problem: {name: softmax, partition: one-class}
    step: {name: inverse-sqrt, a: 0.9, b: 1}
    local: {decay: 0.01}
    rounds: 2000
    plugins: [mine.py]                   # scripts beside this file, or modules, with your own rules

How to train (problem, rule, rounds, evaluate_every, step, local, seed, dtype, threads, measure, channel, labels,
plugins) is written as in the config of a run, with the same defaults. Unknown keys are errors. `share` of a peer says
which part of the problem's data it has (default: its id), `shares` into how many parts they are split (default: the
number of peers). File names are relative to the folder of this file, as in a config.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from byzmesh.config.paths import anchor_problem, problem_as_written
from byzmesh.config.schema import TRAINING, TrainingConfig, resolve_training, validated
from byzmesh.config.yaml import parse_yaml, read_yaml
from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.files import CHECKPOINT_SECONDS, write
from byzmesh.networks import Network
from byzmesh.networks.processes import Meetings, process
from byzmesh.peers.channel_key import from_wire
from byzmesh.peers.entries import PeerEntry, Timeouts
from byzmesh.peers.network_check import check_network
from byzmesh.peers.patience import Patience
from byzmesh.peers.run_id import run_id
from byzmesh.peers.signing import NotSigned, verify
from byzmesh.peers.transport import OPEN_LINKS, Remote
from byzmesh.problems import Problem, problems
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.training.local import LocalOptions
from byzmesh.training.metrics import Metric, canonical_measures, metrics
from byzmesh.training.schedules import Schedule, schedule


class NetworkFile(TrainingConfig):
    """A validated network file with a canonical training part; created by `network_file` or `load_network`."""

    model_config = ConfigDict(frozen=True, strict=False)

    name: str = "network"
    nonce: str = ""
    """Tells two runs of otherwise equal files apart; `byzmesh peers plan` draws one."""
    epoch: int = Field(0, ge=0)
    """Which file of the run this is; running peers take up a newer one."""
    from_round: int = Field(0, ge=0)
    """The round from which on it is in force."""
    operator: str = Field("", pattern="^([0-9a-f]{64})?$")
    """Public key of whoever may sign files of this run; empty if files are not signed and members never change."""
    signature: str = ""
    """The operator's signature of the file: its last line."""
    peers: list[PeerEntry] = Field(min_length=1)
    topology: str | dict[str, Any] | None = None
    edges: list[tuple[int, int]] | None = None
    directed: bool = False
    """Whether an edge (a, b) only means that a sends to b."""
    weights: str | list[list[float]] = "metropolis-hastings"
    f: int | dict[int, int] = 1
    shares: int | None = Field(None, ge=1)
    rounds: int = Field(ge=1)
    open_links: int = Field(OPEN_LINKS, ge=1)
    """On a network that changes: neighbours that a peer listens to besides those due in the rounds to come."""
    checkpoint_seconds: float = Field(CHECKPOINT_SECONDS, gt=0)
    """How often a peer writes its state, to continue from."""
    timeouts: Timeouts = Timeouts()

    _folder: Path = PrivateAttr(default_factory=Path.cwd)
    _text: bytes = PrivateAttr(b"")

    @property
    def folder(self) -> Path:
        """The base of relative file names."""
        return self._folder

    @property
    def text(self) -> bytes:
        """The bytes that the operator signed, with the signature; empty for a file that is not signed."""
        return self._text

    @cached_property
    def ids(self) -> list[int]:
        """The peers, ascending; their position is their node in `network`."""
        return [entry.id for entry in self.peers]

    @property
    def parts(self) -> int:
        """Into how many parts the data are split."""
        return self.shares or len(self.peers)

    @cached_property
    def network(self) -> Network:
        """Graph and weights; nobody in it is known to lie."""
        if (self.topology is None) == (self.edges is None):
            raise ConfigError("network file: give exactly one of 'topology' and 'edges'")
        if self.edges is not None:
            edges = [(self.node(a), self.node(b)) for a, b in self.edges]
            graph = Network.from_edges(
                edges, len(self.peers), weights=self.weights, name=self.name, directed=self.directed
            )
        else:
            graph = Network.from_spec(
                self.topology, byzantine="none", weights=self.weights, seed=self.seed, folder=self._folder
            )
        if graph.n != len(self.peers):
            raise ConfigError(f"network file: {len(self.peers)} peers for a graph of {graph.n} nodes; make them equal")
        return graph

    @cached_property
    def meetings(self) -> Meetings | None:
        """The rounds of a network that changes or has links that go one way; None: everybody hears all neighbours."""
        chosen = process(self.process)
        if chosen and not isinstance(self.weights, str):
            raise ConfigError("network file: weights of a network that changes cannot be numbers; name a scheme")
        for one in chosen:
            if one.oldest:
                raise ConfigError(f"network file process: {one.name} is for the simulator; leave it out")
            if one.knows_liars:
                raise ConfigError(f"network file process: {one.name}: peers do not know who lies; leave out liars")
        changing = chosen or self.network.directed
        return Meetings(chosen, self.network.links, seed=self.seed) if changing else None

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
        """Hash of what the peers must agree on: not addresses, timeouts, or the number of rounds; nor, if an operator
        signs, what an epoch may change."""
        return run_id(self)

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
        """The graph as in the config of a run, with these liars; ids that are not 0, 1, ... are the nodes' names."""
        graph = self.network
        spec = {"label": self.name, "edges": graph.links.edges().tolist(), "n": graph.n, "weights": self.weights}
        if graph.directed:
            spec["directed"] = True
        if self.ids != list(range(graph.n)):
            spec["names"] = list(map(str, self.ids))
        return {**spec, "byzantine": [self.node(peer) for peer in byzantine]}

    def node(self, peer: int) -> int:
        """The position of a peer, which is its node in `network`."""
        place = bisect_left(self.ids, peer)
        if place == len(self.ids) or self.ids[place] != peer:
            known = f"0 to {len(self.ids) - 1}" if self.ids[-1] == len(self.ids) - 1 else ", ".join(map(str, self.ids))
            raise ConfigError(f"network file: no peer {peer}; ids are {known}")
        return place

    def entry(self, peer: int) -> PeerEntry:
        """The entry of a peer."""
        return self.peers[self.node(peer)]

    def bound(self, peer: int) -> int:
        """f of a peer."""
        return self.f if isinstance(self.f, int) else self.f[peer]

    def share(self, peer: int) -> int:
        """The row of the problem's task that belongs to a peer."""
        share = self.entry(peer).share
        return peer if share is None else share

    def remotes(self, peer: int) -> dict[int, Remote]:
        """A peer's neighbours, or whomever it may ever meet: their addresses and keys."""
        node, links = self.node(peer), self.network.links
        met = np.union1d(links.of(node), links.receiver[links.sender == node])
        if self.meetings is not None and any(one.replaces for one in self.meetings.processes):
            met = np.setdiff1d(np.arange(len(self.peers)), [node])
        near = [self.peers[other] for other in met.tolist()]
        return {entry.id: Remote(entry.address, entry.public_key) for entry in near}

    def weights_of(self, peer: int) -> dict[int, float]:
        """The mixing weights of a peer's neighbours."""
        return dict(zip(self.remotes(peer), self.network.neighbour_weights(self.node(peer)).tolist(), strict=True))

    def check(self) -> NetworkFile:
        """This file, after checking everything that could stop a peer later."""
        check_network(self)
        return self


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
    content = from_wire(content)
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
    """The network file at `path`; `NotSigned` if it names an operator who did not sign it as it is."""
    path = Path(path)
    content = read_yaml(path, ids=True, way_out="give the path of a network file")
    if not content.get("operator"):
        return network_file(content, path.parent)
    return signed_network(path.read_bytes(), str(content["operator"]), path.parent)


def signed_network(text: bytes, operator: str, folder: str | Path) -> NetworkFile:
    """The network file in these bytes, which are not even parsed unless the operator signed them."""
    verify(text, operator)
    content = parse_yaml(text.decode(errors="replace"), ids=True, where="network file")
    if content.get("operator") != operator:
        raise NotSigned(f"network file must name its operator {operator}, got {content.get('operator')!r}")
    made = network_file(content, folder)
    made._text = text
    return made


def save_network(file: NetworkFile, path: str | Path) -> Path:
    """Write a network file to its folder: what was given, then how to train, in full."""
    import yaml

    given = file.model_dump(mode="json", exclude_unset=True)
    content = dict(sorted(given.items(), key=lambda item: item[0] in TRAINING))
    return write(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))
