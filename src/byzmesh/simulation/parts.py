"""What a simulation consists of: its parts, which are given, what is prepared from them, and the state of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Ranks, Scene, Weigh, no_wrong_model
from byzmesh.channels import Stage as ChannelStage
from byzmesh.checks import whole
from byzmesh.compiled import keep_memory
from byzmesh.errors import NoLiars
from byzmesh.networks import Network
from byzmesh.networks.processes import Process
from byzmesh.problems.base import Task
from byzmesh.round import Round
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.base import Rule
from byzmesh.rules.prepared import Prepared
from byzmesh.simulation.carrying import Courier, check_channel
from byzmesh.simulation.edges import EdgeCounts, PairCounts
from byzmesh.simulation.exchange import Exchange, scene_of
from byzmesh.simulation.live import Live
from byzmesh.simulation.live_scene import Stage
from byzmesh.training.evaluation import Setting
from byzmesh.training.local import LocalOptions
from byzmesh.training.local_round import LocalRound
from byzmesh.training.metrics import ALWAYS, metrics
from byzmesh.training.schedules import Schedule
from byzmesh.types import Integers

FINISHED, DIVERGED, RUNNING = "finished", "diverged", "running"
LOST = 1e20
"""An honest model with a larger entry has diverged; messages end at 1e30, so that not every lost model overflows."""


class RunState:
    """What changes from round to round; `Simulation.start` sets it.

    models, half  (R, D) the models and the last half steps
    exchange      the inboxes of the round, `scene` the same as liars know it, `bound` (R,) how many lies to expect
    prepared      what is known of every round, or of this one on a changing network
    last          what was sent in the last round, and the coefficients (R, K) of the slots
    futures       copies of the simulation that run ahead, for attacks that look ahead; `before` and `courier_before`:
                  the states of local rounds and channel in which they begin
    """

    models: Any
    half: Any
    round: int
    status: str
    seconds: float
    rule_state: Any
    attack_state: Any
    exchange: Exchange
    scene: Scene
    bound: Integers
    live: Live | None
    courier: Courier | None
    prepared: Prepared | None
    trials: Callable[[Round], Weigh] | Ranks | None
    counts: EdgeCounts | PairCounts | None
    sent_bytes: Integers
    series: dict[str, list[float]]
    per_worker: dict[str, list[Any]]
    last: tuple[Any, Any]
    futures: dict[int, Any]
    before: dict[str, Any]
    courier_before: Any


@dataclass(kw_only=True)
class Parts(RunState):
    """The parts of a simulation and what is prepared from them once."""

    task: Task
    network: Network
    rule: Rule
    attack: Attack
    rounds: int
    schedule: Schedule
    local: LocalOptions
    f: Any = "exact"
    evaluate_every: int = 100
    seed: int = 0
    threads: int = 1
    measure: tuple[str, ...] = ()
    process: tuple[Process, ...] = ()
    channel: tuple[ChannelStage, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    wrong_model: Callable[[int], Any] = no_wrong_model

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, 0)
        whole("evaluate_every", self.evaluate_every, 1)
        if len(self.network.byzantine) == 0 and self.attack.name != "none":
            raise NoLiars(self.attack.name)
        self.always = [metrics.build(name) for name in ALWAYS]
        self.asked = [metrics.build(name) for name in self.measure]
        keep_memory()
        honest = self.network.honest
        told = self.weight_bound = self.network.weight_bounds(self.f)
        if self.process:
            bound = np.zeros(len(honest), np.int64)  # of every round its own: `_meet`
        else:
            bound = self.network.bounds(self.f, self.rule.largest_f)
            check_feasible(self.rule, bound, self.network.degree[honest], honest)
        if self.attack.poisons_data:
            # liars train and aggregate like everybody else, on their own data: every node is a row, in order of ids
            acting = self.network.with_byzantine("none")
            self.task_row = np.empty(self.network.n, np.int64)
            self.task_row[honest] = np.arange(len(honest))
            self.task_row[self.network.byzantine] = len(honest) + np.arange(len(self.network.byzantine))
            self.bound = self.network.links.count(self.network.lies)
            self.bound[honest] = bound
            if self.weight_bound is not None:
                of_honest, self.weight_bound = self.weight_bound, np.full(self.network.n, np.inf)
                self.weight_bound[honest] = of_honest
            self.honest_row = honest.copy()
        else:
            acting = self.network
            self.task_row = self.honest_row = np.arange(len(honest))
            self.bound = bound
        self.setting = Setting(network=self.network, rule=self.rule, bound=bound, weight_bound=told)
        self.exchange = Exchange(acting)
        gradient = self.task.full_gradient
        self.scene = replace(scene_of(self.network), wrong_model=self.wrong_model, gradient=gradient)
        self.live = None
        if self.process:
            stage = Stage(self.network, acting, self.wrong_model, gradient)
            self.live = Live(self.process, stage, self.rule, self.f, self.rounds, self.seed)
        self.local_round = LocalRound(self.task, self.task_row, self.schedule, self.local, self.seed)
        check_channel(self.channel, self.process, self.rule.sends, self.network.directed)
