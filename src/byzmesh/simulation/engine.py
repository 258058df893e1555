"""The round loop: Algorithm 1 for all honest workers at once.

    k-th round    half = models - step g               (training: local round, one batched call)
                  forged = what liars send             (attacks)
                  models = rule(half, forged)          (rules: all receivers at once)

There is no Python loop over workers or neighbours. Every draw is a function of (seed, purpose, worker, round), so the
state of a run is its models, the small states of rule, local update and attack, and the series measured so far. A
checkpoint contains these, and a resumed run equals an uninterrupted one bit for bit (same CPU type, same threads).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, State, Weigh, forged_by, no_wrong_model
from byzmesh.attacks.scene import make_view
from byzmesh.attacks.state import renewed
from byzmesh.channels import Stage as ChannelStage
from byzmesh.channels import sent_bytes
from byzmesh.checks import whole
from byzmesh.compiled import computing_time, keep_memory, limit_threads
from byzmesh.errors import ConfigError, NoLiars
from byzmesh.networks import Network
from byzmesh.networks.processes import Process
from byzmesh.problems.base import Task
from byzmesh.progress import progress_bar
from byzmesh.round import Round
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.base import Inbox, Rule
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.inbox import sent_by
from byzmesh.rules.interop import from_host, to_host
from byzmesh.rules.prepared import Prepared, prepare
from byzmesh.simulation.carrying import Courier, check_channel
from byzmesh.simulation.edges import EdgeCounts, PairCounts
from byzmesh.simulation.exchange import Delivery, Exchange, scene_of
from byzmesh.simulation.live import NOBODY, Live
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.simulation.live_scene import Stage
from byzmesh.simulation.run import Run
from byzmesh.simulation.saving import restore, save
from byzmesh.simulation.trials import trials
from byzmesh.sparse import DENSE
from byzmesh.training.evaluation import Evaluation, Setting
from byzmesh.training.local import LocalOptions
from byzmesh.training.local_round import LocalRound
from byzmesh.training.metrics import ALWAYS, BYTES, asked_for, metric_of, metrics, summarise
from byzmesh.training.schedules import Schedule
from byzmesh.types import Integers

FINISHED, DIVERGED, RUNNING = "finished", "diverged", "running"
_Found = tuple[Any, Any, Any, Any]
"""The outcome of a round: models, coefficients or None, which slots counted, the rule's next state."""
LOST = 1e20
"""An honest model with a larger entry has diverged; messages end at 1e30, so that not every lost model overflows."""


def _holders(owner: Any, name: str) -> int:
    """How many references there are to what an attribute holds, those of this call among them."""
    value = getattr(owner, name)
    return getrefcount(value)


HELD_ONCE = _holders(SimpleNamespace(alone=object()), "alone")
"""`_holders` of something that nothing but its owner holds."""


@dataclass(kw_only=True)
class Simulation:
    """A simulation to run step by step.

    Iterating yields a dict of the metrics at every evaluation; `run()` runs to the end. Its parts cannot be
    replaced: the config describes them, and much is prepared from them.

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rounds=2)
    >>> run.step()
    True
    >>> run.round, run.models.shape
    (1, (5, 1))
    >>> run.rule = bm.rule("mean")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: rule of a simulation cannot be changed; build another simulation with it
    """

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
        self.weight_bound = self.network.weight_bounds(self.f)
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
        self.setting = Setting(network=self.network, rule=self.rule, bound=bound)
        self.exchange: Exchange = Exchange(acting)
        self.scene = replace(scene_of(self.network), wrong_model=self.wrong_model)
        self.live: Live | None = None
        if self.process:
            stage = Stage(self.network, acting, self.wrong_model)
            self.live = Live(self.process, stage, self.rule, self.f, self.rounds, self.seed)
        self.local_round = LocalRound(self.task, self.task_row, self.schedule, self.local, self.seed)
        check_channel(self.channel, self.process, self.rule.sends)
        self.courier: Courier | None = None
        self.start()

    def start(self) -> None:
        """Go back to round 0."""
        first = self.task.initial()
        self.models = first[self.task_row] if self.attack.poisons_data or len(first) > len(self.task_row) else first
        self.local_round.start(self.models)
        if self.channel:
            shown = self.local_round.shown(self.models)
            self.courier = Courier(self.channel, shown, self.exchange.receiver, self.seed, self.network.links)
        self.sent_bytes = np.zeros(len(self.models), np.int64)
        self._former: Any = None
        self._delivery: Delivery | None = None
        parts = self.rule.consists_of
        mixes = parts is not None and parts.apply is self.rule.apply and self.rule.sends == "half"
        self._overwrites = mixes and not (self.live or self.local_round.needs_former or self.rule.needs_previous)
        """Whether nobody reads the models any more once there are half steps and lies."""
        self.round = 0
        self.status = RUNNING
        self.seconds = 0.0
        self.rule_state = self.rule.init(self.local_round.shown(self.models))
        self.attack_state = None if self.attack.poisons_data or self.live else self.attack.init(self.scene)
        self.trials = None if self.live else self._trials()
        self.prepared = None if self.live else self._prepare()
        self.counts: EdgeCounts | PairCounts | None = None
        self._met: dict[int, tuple[LiveExchange, Integers, Integers]] = {}
        if self.live:
            self.live.past.forget()
        self.series: dict[str, list[float]] = {}
        self.per_worker: dict[str, list[Any]] = {}
        self.last: tuple[Any, Any] = (None, None)
        self.futures: dict[int, Simulation] = {}

    def step(self) -> bool:
        """Compute one round; False if an honest model is beyond `LOST` or not finite, which ends the run."""
        k = self.round
        if self.attack.horizon and k % self.attack.horizon == 0:
            self.before = {name: values.copy() for name, values in self.local_round.states().items()}
            self.courier_before = () if self.courier is None else self.courier.state
        asleep = self._meet(self.live, k) if self.live else NOBODY
        self.half = self.local_round.half_steps(self.models, k, asleep)
        round = Round(number=k, total=self.rounds, step_size=self.schedule(k), seed=self.seed)
        if self.courier is not None:
            sent = sent_by(self.rule, self.half, self.local_round.shown(self.models))
            kept = self.courier.carry(sent, k, reuse=self.attack.fixed or not self._lies)
            if self.courier.channel.stays:
                self.half = self.local_round.go_on_from(kept)
        found = self._prepared_round(round) or self._whole_round(round)
        if found is None:
            self.status = DIVERGED
            return False
        agreed, coefficients, present, state = found
        before = self.models
        self.models = self.local_round.outer(before, agreed, asleep)
        if self.live:
            self.live.remember(self.half, self.local_round.peak, self.local_round.shown(before))
        if len(asleep):
            if hasattr(state, "shape"):  # a row per receiver, perhaps the models themselves
                state = from_host(to_host(state).copy(), state)
                state[asleep] = self.rule_state[asleep]
            self.models[asleep] = before[asleep]
        self.rule_state = state
        self._count(self.half if self.rule.sends == "half" else before, coefficients, present)
        return True

    def _prepared_round(self, round: Round) -> _Found | None:
        """The outcome of a usual round; None: `_whole_round` decides."""
        prepared, messages, message_peak, self._delivery = self.prepared, None, None, None
        if prepared is None:
            self._delivery = self._deliver(round)
            messages, message_peak = self._delivery.messages, self._delivery.peak
            if not self._may_prepare or (messages is not None and messages.dtype != self.half.dtype):
                return None
            prepared = self._prepared_for(self._delivery)
        if prepared is None:
            return None
        peak = peaks(self.half) if self.local_round.peak is None else self.local_round.peak
        spare = self._spare()
        found = prepared.apply(self.half, peak, round, self.rule_state, messages, spare, message_peak)
        if found is None:
            return None
        if not self._overwrites:
            self._former = self.models
        return found[0], found[1], prepared.present, found[2]

    def _prepared_for(self, delivery: Delivery) -> Prepared | None:
        """What can be prepared for a round in which this arrives: much of it, if the links and lies are known."""
        old = 0 if delivery.messages is None else len(delivery.messages)
        known = self.exchange.prepared if isinstance(self.exchange, LiveExchange) and self._same_lies else {}
        if old in known:
            prepared = known[old]
            return prepared if prepared is None else prepared.refill(delivery.index)
        arrivals = self.exchange.arrivals(delivery, self.half, self.bound, self.weight_bound)
        known[old] = prepare(self.rule, arrivals, self.models.shape[1], LOST)
        return known[old]

    def _whole_round(self, round: Round) -> _Found | None:
        """The outcome of any round; None if an honest model is beyond `LOST`."""
        delivery = self._deliver(round) if self._delivery is None else self._delivery
        spare = self._spare()
        inbox = replace(self._inbox(delivery, round), out=spare)
        pool = inbox.pool
        if not pool.top <= LOST and not (pool.peak[: len(pool.own)] <= LOST).all():
            return None
        outcome, state = self.rule.apply(inbox, self.rule_state)
        self._former = None if spare is self.models else self.models
        return self.local_round.apart(outcome.models), outcome.coefficients, inbox.present, state

    def _count(self, sent: Any, coefficients: Any, present: Any) -> None:
        """End a round in which the receivers gave these coefficients to what arrived."""
        self.last = (sent, coefficients)
        if BYTES in self.measure:
            self._count_bytes()
        if coefficients is not None:
            if self.counts is None:
                self.counts = self.start_counts()
            if self.counts is not None:
                self.counts.add(coefficients, present, self.exchange)
        self.round += 1

    def _count_bytes(self) -> None:
        """Add what the workers sent in this round: a message to everybody who hears them."""
        links = self.exchange.links if isinstance(self.exchange, LiveExchange) else self.network.links
        heard = np.bincount(links.sender, minlength=self.network.n)[self.exchange.receiver]
        if self.courier is None:
            models = to_host(self.models[:0])
            self.sent_bytes += heard * sent_bytes(models.itemsize * models.shape[1])
        else:
            self.sent_bytes += self.courier.sent_bytes(self.exchange, heard)

    def start_counts(self, **counted: Any) -> EdgeCounts | PairCounts | None:
        """Sums over the edges, from zero or from those of a checkpoint; None: too many pairs to count."""
        if not self.live:
            return EdgeCounts(self.exchange, **counted)
        return PairCounts(self.exchange.receiver, self.network.n, **counted) if self.network.n <= DENSE else None

    def _meet(self, live: Live, k: int) -> Integers:
        """Go to the links of a round; who sleeps in it. An attack's plan is made anew, what it remembers is kept."""
        if k not in self._met:
            self._look_ahead(live, k)
        exchange, self.bound, asleep = self._met.pop(k)
        self.exchange, live.bound, live.asleep = exchange, self.bound, asleep
        live.begin(k, self.local_round, self.models)
        self.prepared = exchange.prepared.get(0) if exchange.age is None else None
        if exchange.lies:
            scene = self.scene = exchange.scene
            if exchange.plan is None:
                self.attack_state = renewed(self.attack_state, lambda: self.attack.init(scene))
            else:
                self.attack_state = exchange.plan
            self.trials = self._trials()
        return asleep

    def _look_ahead(self, live: Live, k: int) -> None:
        """Prepare the next rounds as far as they do not depend on the models; an error waits for its round."""
        self._met.clear()
        self.half, first = np.zeros_like(to_host(self.models[:, :1])), Round(total=self.rounds, seed=self.seed)
        for number in range(k, max(k + 1, min(k + live.ahead, self.rounds))):
            try:
                exchange = live.meet(number)
                self._plan(live, exchange, first)
            except Exception:
                if number == k:
                    raise
                return
            self._met[number] = exchange, live.bound, live.asleep

    def _plan(self, live: Live, exchange: LiveExchange, round: Round) -> None:
        """What is known from the links alone: the lies of a fixed attack, the same in any round, and what arrives."""
        self.exchange, self.bound = exchange, live.bound
        if exchange.lies:
            scene = self.scene = exchange.scene
            if exchange.plan is None and self.attack.fixed:
                exchange.plan = renewed(self.attack_state, lambda: self.attack.init(scene))
            self.attack_state = self.attack_state if exchange.plan is None else exchange.plan
        if exchange.age is None and 0 not in exchange.prepared and self._may_prepare and self._same_lies:
            self._prepared_for(self._deliver(round))

    def _trials(self) -> Callable[[Round], Weigh] | None:
        if not self.attack.needs_response or self.channel:
            return None
        if isinstance(self.exchange, LiveExchange) and self.exchange.age is not None:
            return None  # trials know the models of this round only
        dtype = to_host(self.models[:0]).dtype
        return trials(self.rule, self.exchange, self.scene, self.bound, dtype, self.weight_bound)

    @property
    def _lies(self) -> bool:
        """Whether messages are forged."""
        return self.exchange.lies > 0

    def _prepare(self) -> Prepared | None:
        """What is the same in every round, if the lies are; None: every round is new."""
        if not self._may_prepare or self.channel or (self._lies and not self.attack.fixed):
            return None
        self.half = np.zeros_like(self.models[:, :1])
        delivery = self._deliver(Round(total=self.rounds, seed=self.seed))
        arrivals = self.exchange.arrivals(delivery, self.half, self.bound, self.weight_bound)
        return prepare(self.rule, arrivals, self.models.shape[1], LOST)

    @property
    def _may_prepare(self) -> bool:
        """Whether a round may be computed from what is known before its vectors."""
        return isinstance(self.models, np.ndarray) and self.rule.consists_of is not None

    def _deliver(self, round: Round) -> Delivery:
        """What arrives in a round, with its lies."""
        exchange = self.exchange
        if not isinstance(exchange, LiveExchange) or not self._same_lies:
            return self._delivered(self._forge(round) if self._lies else None)
        if exchange.fresh is None:
            exchange.fresh = Exchange.deliver(exchange, self._forge(round) if self._lies else None, self.half)
        return exchange.with_late(exchange.fresh, self.half)

    @property
    def _same_lies(self) -> bool:
        """Whether the same links bring the same lies, as combinations of honest models."""
        return self.courier is None and (self.attack.fixed or not self._lies)

    def _delivered(self, forged: Forged | None) -> Delivery:
        if self.courier is None:
            return self.exchange.deliver(forged, self.half)
        return self.courier.deliver(self.exchange, forged, self.half, self.bound)

    def _spare(self) -> Any:
        """Memory for the next models that nobody holds any more: fresh pages cost time, and long models memory.

        That of the current models if the rule only mixes what was sent, otherwise of those before them.
        """
        name = "models" if self._overwrites else "_former"
        models = getattr(self, name)
        alone = isinstance(models, np.ndarray) and models.base is None
        del models
        return getattr(self, name) if alone and _holders(self, name) == HELD_ONCE else None

    def _inbox(self, delivery: Delivery, round: Round) -> Inbox:
        """The inboxes of the workers after their half steps."""
        return self.exchange.inbox(
            self.rule,
            self.half,
            delivery,
            f=self.bound,
            b=self.weight_bound,
            round=round,
            previous=self.local_round.shown(self.models),
            loss=self.local_round.losses(round.number) if self.rule.needs_loss else None,
            peak=self.local_round.peak,
        )

    def _forge(self, round: Round) -> Forged:
        before = self.local_round.shown(self.models)
        sent = sent_by(self.rule, self.half, before) if self.courier is None else self.courier.arrived
        respond = self._responder(sent, round) if self.attack.needs_response else None
        weigh = None if self.trials is None else self.trials(round)
        looks = self.attack.horizon and round.number % self.attack.horizon == 0
        foresee = self._foresee if looks else None
        view = make_view(to_host(sent), self.scene, round, respond, weigh, foresee, to_host(before))
        forged, self.attack_state = forged_by(self.attack, view, self.attack_state)
        if forged.rows is not None and not isinstance(sent, np.ndarray):
            return Forged(forged.liar, forged.victim, forged.row, sent, rows=from_host(forged.rows, sent))
        return forged

    def _responder(self, sent: Any, round: Round) -> Callable[[Any], Any]:
        """For attacks that try their messages on the rule: (F, D), a row per pair, or (V, D) -> models (N, D)."""
        scene = self.scene
        pairs = np.arange(len(scene.liar))

        def respond(messages: Any) -> Any:
            row = scene.place if len(messages) == len(scene.victims) else pairs
            forged = Forged(scene.liar, scene.victim, row, sent, rows=from_host(messages, sent))
            outcome, _ = self.rule.apply(self._inbox(self._delivered(forged), round), self.rule_state)
            return to_host(outcome.models)

        return respond

    def _foresee(self, attack: Attack, state: State, rounds: int) -> float:
        """`View.foresee`: a copy of the simulation as it was before this round's half steps runs ahead."""
        if id(attack) not in self.futures:
            self.futures[id(attack)] = replace(self, attack=attack)
        ahead = self.futures[id(attack)]
        ahead.models, ahead.round, ahead.status = self.models, self.round, RUNNING
        ahead.rule_state, ahead.attack_state = self.rule_state, state
        if self.live and ahead.live:
            ahead.live.past.like(self.live.past, self.round)
        if self.courier and ahead.courier:
            ahead.courier.state = self.courier_before
        ahead.local_round.start(ahead.models)
        ahead.local_round.resume({name: values.copy() for name, values in self.before.items()})
        for _ in range(rounds):  # past the end of the run too: a longer run must choose alike
            if not ahead.step():
                return np.inf
        measures = self.task.evaluate(ahead.models)
        harm = 1.0 - np.mean(measures["accuracy"]) if "accuracy" in measures else np.mean(measures["loss"])
        return float(harm)

    def evaluate(self) -> dict[str, float]:
        """Measure the current honest models and append the metrics to the series."""
        honest = self._honest(self.models)
        measures = self.task.evaluate(honest)
        at = Evaluation(
            round=self.round,
            models=to_host(honest),
            measures=measures,
            task=self.task,
            setting=self.setting,
            exchange=self._exchanged,
            arrival=self._arrived,
            sent_bytes=self._honest(self.sent_bytes),
        )
        record = {"round": float(self.round), **summarise(at, self.always)}
        if not all(np.isfinite(value) for value in record.values()):
            self.status = DIVERGED
            return {}
        record |= asked_for(at, self.asked)
        for name, value in record.items():
            self.series.setdefault(name, []).append(value)
        for name, values in measures.items():
            self.per_worker.setdefault(name, []).append(np.asarray(values, np.float64))
        if BYTES in self.measure:
            self.per_worker.setdefault(BYTES, []).append(self._honest(self.sent_bytes).astype(np.float64))
        return record

    def _exchanged(self) -> tuple[Any, Any]:
        """The models that honest workers sent in the last round, and how much each slot of their inboxes counted."""
        if self.live:
            raise ConfigError("this metric compares a round with the theory of one graph; leave it out with a process")
        sent, coefficients = (part if part is None else self._honest(to_host(part)) for part in self.last)
        return sent, coefficients

    def _arrived(self) -> Any:
        """What arrived of the honest workers' messages in the last round; None without a channel."""
        if self.courier is None or self.last[0] is None:
            return None
        return self._honest(to_host(self.courier.arrived))

    def _honest(self, rows: Any) -> Any:
        """The rows of the honest workers; a copy only if there are others."""
        return rows[self.honest_row] if self.attack.poisons_data else rows

    def advance(self) -> dict[str, float]:
        """Evaluate at round 0, or compute one round and evaluate if due; the metrics, or an empty dict."""
        began = computing_time()
        due = self.round == 0 and not self.series
        if not due:
            due = self.step() and (self.round % self.evaluate_every == 0 or self.round == self.rounds)
        record = self.evaluate() if due else {}
        if self.status == RUNNING and self.round >= self.rounds:
            self.status = FINISHED
        self.seconds += computing_time() - began
        return record

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Run to the end, yielding the metrics at every evaluation (including round 0)."""
        with limit_threads(self.threads):
            while self.status == RUNNING:
                record = self.advance()
                if record:
                    yield record

    def run(self, *, progress: bool = False) -> Run:
        """Run to the end; with `progress`, a bar in a notebook or a terminal tells of every evaluation."""
        with progress_bar(progress) as tell:
            for record in self:
                shown = ", ".join(metric_of(name).text(record[name]) for name in ("accuracy", "loss") if name in record)
                tell(self.round / max(self.rounds, 1), f"round {self.round} of {self.rounds}: {shown}")
        return self.result()

    def result(self) -> Run:
        """The result so far."""
        return Run(
            config=self.config,
            metrics={name: np.array(values) for name, values in self.series.items()},
            workers={name: np.array(values) for name, values in self.per_worker.items()},
            models=to_host(self.models)[self.honest_row],
            edges=None if self.counts is None else self.counts.edges(self.network.byzantine),
            status=self.status,
            rounds=self.round,
            seconds=self.seconds,
        )

    def save(self, path: str | Path) -> None:
        """Write a checkpoint: one file, replaced in one step."""
        save(self, path)

    def restore(self, path: str | Path) -> None:
        """Go back to a checkpoint of the same config."""
        restore(self, path)

    def extend(self, path: str | Path) -> None:
        """Continue from the last checkpoint of the same config with fewer rounds.

        The caller must know that no round depends on the number of rounds. The evaluation at that run's last round is
        dropped unless this run has it too.
        """
        restore(self, path, fewer_rounds=True)
        if self.round % self.evaluate_every and self.series["round"][-1] == self.round:
            for values in (*self.series.values(), *self.per_worker.values()):
                values.pop()
        self.status = RUNNING


class _Part:
    """A field that is set once. Without `__get__`, so that reading it costs no call, nor setting anything else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __set__(self, owner: Any, value: Any) -> None:
        if self.name in owner.__dict__:
            raise ConfigError(f"{self.name} of a simulation cannot be changed; build another simulation with it")
        owner.__dict__[self.name] = value


for _name in Simulation.__dataclass_fields__:
    setattr(Simulation, _name, _Part(_name))
