"""A Flower strategy: any of our rules combines what the clients send. Needs the extra `flower`.

    from byzmesh.integrations.flower import Robust

    @app.main()
    def main(grid, context):
        Robust("ios", f=1, min_train_nodes=5).start(grid=grid, initial_arrays=arrays, num_rounds=10)

It takes the place of `flwr.serverapp.strategy.FedAvg`, whose arguments it has. How a rule for workers works on a server
is said in `byzmesh.integrations.server`. What a client controls is not trusted:

    its arrays      a missing name, another shape, bytes that are not an array, NaN: the client counts as silent
                    (FedAvg ends the run at the first reply that differs in form)
    num-examples    not used, unless weigh="examples"; then no client counts more than the f + 1st largest claim
    its metrics     the median over the clients, of those that more than half of them report
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from byzmesh.checks import choice
from byzmesh.errors import MissingExtra
from byzmesh.integrations.layout import Layout
from byzmesh.integrations.server import ServerRule
from byzmesh.round import Round
from byzmesh.rules.base import Rule

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import FedAvg, Result
except ImportError as error:
    raise MissingExtra("flower", "the Flower strategy") from error

log = logging.getLogger("flwr")


class Robust(FedAvg):
    """FedAvg with a robust rule in the place of the average.

    rule, f   as for `byzmesh.integrations.server.ServerRule`; f bounds how many of the replies of a round are lies
    weigh     "equal", or "examples": the clients' claims in `weighted_by_key`, for rules that use weights
    loss      vector -> loss on data of the server, for the rules that need it
    options   of the rule, by name
    fedavg    the arguments of FedAvg: fraction_train, min_train_nodes, ...
    """

    def __init__(
        self,
        rule: str | Rule | Mapping[str, Any] = "ios",
        f: int = 1,
        *,
        weigh: str = "equal",
        loss: Callable[[Any], float] | None = None,
        options: Mapping[str, Any] | None = None,
        **fedavg: Any,
    ) -> None:
        super().__init__(
            **{"train_metrics_aggr_fn": median_metrics, "evaluate_metrics_aggr_fn": median_metrics, **fedavg}
        )
        self.combine = ServerRule(rule, f, loss=loss, **(options or {}))
        self.weigh = choice("weigh", weigh, ("equal", "examples"))
        self.rounds = 0
        self.model: dict[str, Any] = {}

    def summary(self) -> None:
        """Log the rule, then what FedAvg logs."""
        log.info("\t├──> Rule: %r with f = %d, weights: %s", self.combine.rule, self.combine.f, self.weigh)
        super().summary()

    def start(self, grid: Grid, initial_arrays: ArrayRecord, num_rounds: int = 3, *args: Any, **kwargs: Any) -> Result:
        """Run the rounds; some rules depend on how many there are."""
        self.rounds = num_rounds
        return super().start(grid, initial_arrays, num_rounds, *args, **kwargs)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Remember the global model, then as FedAvg; an f that is too large for the clients asked ends the run here."""
        self.model = {name: array.numpy() for name, array in arrays.items()}
        messages = list(super().configure_train(server_round, arrays, config, grid))
        if messages:
            self.combine.check(len(messages))
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The rule's model of the replies, and the median of their metrics; (None, ...) leaves the model as it is."""
        # in the order of the clients' ids: the same replies give the same bits, however late each came
        every = sorted(replies, key=lambda reply: reply.metadata.src_node_id)
        contents = [None if reply.has_error() else reply.content for reply in every]
        layout = Layout.of(self.model)
        vectors = [None if content is None else vector_of(content, layout) for content in contents]
        counts = None
        if self.weigh == "examples":
            counts = [0.0 if content is None else claim(content, self.weighted_by_key) for content in contents]
        where = Round(number=server_round - 1, total=self.rounds)
        mixed = self.combine(layout.vector(self.model), vectors, counts, where) if vectors else None
        silent = [str(reply.metadata.src_node_id) for reply, vector in zip(every, vectors) if vector is None]
        if silent:
            log.info("aggregate_train: silent, or not a model like ours: nodes %s", ", ".join(silent))
        metrics = self.train_metrics_aggr_fn([content for content in contents if content], self.weighted_by_key)
        if mixed is None:
            log.info("aggregate_train: %d usable replies: too few, the model stays", len(vectors) - len(silent))
            return None, metrics
        new = layout.arrays(mixed, self.model)
        return ArrayRecord({name: Array(array) for name, array in new.items()}), metrics

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The median of the clients' metrics."""
        contents = [reply.content for reply in replies if not reply.has_error()]
        return self.evaluate_metrics_aggr_fn(contents, self.weighted_by_key) if contents else None


def vector_of(content: RecordDict, layout: Layout) -> Any:
    """(D,) the model in a reply, or None if it is not a finite model of this layout."""
    records = list(content.array_records.values())
    if len(records) != 1:
        return None
    try:
        vector = layout.vector({name: records[0][name].numpy() for name in layout.shapes})
    except Exception:  # whatever a hostile reply makes the decoder do, the reply is not a model
        return None
    return None if vector is None or not np.isfinite(vector).all() else vector


def claim(content: RecordDict, key: str) -> float:
    """How many examples a client says it has; 0 if it does not say it once, as a number."""
    told = [record[key] for record in content.metric_records.values() if key in record]
    return float(told[0]) if len(told) == 1 and isinstance(told[0], int | float) else 0.0


def median_metrics(contents: list[RecordDict], weighted_by_key: str) -> MetricRecord:
    """The median of each metric that more than half of the replies report, in the same form; the weights are none."""
    told: dict[tuple[str, int | None], list[Any]] = {}
    for content in contents:
        merged = {name: value for record in content.metric_records.values() for name, value in record.items()}
        for name, value in merged.items():
            if name != weighted_by_key and np.isfinite(value).all():
                told.setdefault((name, len(value) if isinstance(value, list) else None), []).append(value)
    metrics = MetricRecord()
    for (name, _), values in told.items():
        if 2 * len(values) > len(contents):
            metrics[name] = np.median(np.asarray(values, np.float64), axis=0).tolist()
    return metrics
