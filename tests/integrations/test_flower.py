"""The Flower strategy: whole runs over a grid in memory, with clients that lie in every way a reply allows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.integrations.flower import Robust, vector_of
from byzmesh.integrations.layout import Layout

TARGET = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)


class Memory(Grid):
    """A grid whose nodes 1 .. n answer at once: reply(node, model) -> the content of its reply, or an error."""

    def __init__(self, nodes: int, reply: Callable[[int, ArrayRecord], Any]) -> None:
        self.nodes, self.reply = nodes, reply

    def set_run(self, run_id: int) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return range(1, self.nodes + 1)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        replies = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = "1"
            told = self.reply(message.metadata.dst_node_id, message.content["arrays"])
            if told is not None:
                replies.append(Message(told, reply_to=message))
        return replies


def trained(model: ArrayRecord, examples: float = 10) -> RecordDict:
    """An honest reply: half of the way to the target."""
    near = model["weight"].numpy() + 0.5 * (TARGET - model["weight"].numpy())
    arrays = ArrayRecord({"weight": Array(near), "steps": model["steps"]})
    return RecordDict({"arrays": arrays, "metrics": MetricRecord({"loss": 0.25, "num-examples": examples})})


def with_weight(array: np.ndarray, **metrics: Any) -> RecordDict:
    arrays = ArrayRecord({"weight": Array(array), "steps": Array(np.array(7))})
    return RecordDict({"arrays": arrays, "metrics": MetricRecord({"loss": 0.25, "num-examples": 10, **metrics})})


def broken_bytes() -> RecordDict:
    bad = Array(dtype="float32", shape=(2, 2), stype="numpy.ndarray", data=b"\x93NUMPY no array")
    return RecordDict({"arrays": ArrayRecord({"weight": bad}), "metrics": MetricRecord({"num-examples": 1})})


LIES: dict[str, Callable[[ArrayRecord], Any]] = {
    "far away": lambda model: with_weight(np.full((2, 2), -1e30, np.float32)),
    "many examples": lambda model: with_weight(np.full((2, 2), 9.0, np.float32), **{"num-examples": 1e12}),
    "not finite": lambda model: with_weight(np.full((2, 2), np.nan, np.float32)),
    "another shape": lambda model: with_weight(np.zeros(4, np.float32)),
    "text": lambda model: with_weight(np.array([["a", "b"], ["c", "d"]])),
    "another name": lambda model: RecordDict({"arrays": ArrayRecord({"bias": model["weight"]}), "m": MetricRecord()}),
    "two models": lambda model: RecordDict({"a": model, "b": model, "metrics": MetricRecord({"num-examples": 1})}),
    "no content": lambda model: RecordDict(),
    "broken bytes": lambda model: broken_bytes(),
    "a metric of its own": lambda model: with_weight(np.zeros((2, 2), np.float32), gain=[1.0, 2.0], loss=float("nan")),
    "an error": lambda model: Error(code=0, reason="no"),
    "silence": lambda model: None,
}


def start(lie: Callable[[ArrayRecord], Any] | None, rounds: int = 8, nodes: int = 5, **strategy: Any) -> Any:
    """A run in which node 1 lies."""
    grid = Memory(nodes, lambda node, model: lie(model) if lie and node == 1 else trained(model))
    first = ArrayRecord({"weight": Array(np.zeros((2, 2), np.float32)), "steps": Array(np.array(7))})
    settings: dict[str, Any] = {"min_train_nodes": nodes, "fraction_evaluate": 0.0, **strategy}
    return Robust(**settings).start(grid, first, num_rounds=rounds)


@pytest.mark.parametrize("kind", LIES)
@pytest.mark.parametrize("weigh", ["equal", "examples"])
def test_the_model_is_learned_whatever_one_client_sends(kind: str, weigh: str) -> None:
    result = start(LIES[kind], rule="ios", f=1, weigh=weigh)
    np.testing.assert_allclose(result.arrays["weight"].numpy(), TARGET, atol=0.02)
    assert result.arrays["weight"].numpy().dtype == np.float32
    assert result.arrays["steps"].numpy() == 7
    assert result.train_metrics_clientapp[8] == {"loss": 0.25}


@pytest.mark.parametrize("rule", ["krum", "coomed", "geomed", "trimean", {"name": "NNM", "inner": "krum"}, "tether"])
def test_other_rules_learn_too(rule: Any) -> None:
    result = start(LIES["far away"], rounds=16, nodes=7, rule=rule, f=1)
    np.testing.assert_allclose(result.arrays["weight"].numpy(), TARGET, atol=0.05)


def test_the_plain_mean_does_not() -> None:
    """So the lies above are lies that matter."""
    found = start(LIES["far away"], rule="mean", f=0).arrays["weight"].numpy()
    assert np.abs(found - TARGET).max() > 1e6


def test_with_too_few_replies_the_model_stays() -> None:
    grid = Memory(5, lambda node, model: trained(model) if node < 3 else None)
    first = ArrayRecord({"weight": Array(np.ones((2, 2), np.float32)), "steps": Array(np.array(7))})
    result = Robust("ios", f=1, min_train_nodes=5, fraction_evaluate=0.0).start(grid, first, num_rounds=2)
    assert len(result.arrays) == 0  # no round had a result


def test_a_reply_has_one_model() -> None:
    model = ArrayRecord({"weight": Array(np.zeros((2, 2), np.float32))})
    layout = Layout.of({"weight": np.zeros((2, 2), np.float32)})
    assert vector_of(RecordDict({"a": model}), layout) is not None
    assert vector_of(RecordDict({"a": model, "b": model}), layout) is None


def test_evaluation_takes_the_median() -> None:
    def reply(node: int, model: ArrayRecord) -> RecordDict:
        loss = 1e9 if node == 1 else 0.1 * node
        return RecordDict({"arrays": model, "metrics": MetricRecord({"loss": loss, "num-examples": 1})})

    first = ArrayRecord({"weight": Array(np.zeros((2, 2), np.float32)), "steps": Array(np.array(7))})
    strategy = Robust("ios", f=1, min_train_nodes=5, min_evaluate_nodes=5)
    result = strategy.start(Memory(5, reply), first, num_rounds=1)
    assert result.evaluate_metrics_clientapp[1] == {"loss": pytest.approx(0.4)}


def test_the_order_in_which_replies_come_does_not_matter() -> None:
    random = np.random.default_rng(0)
    sent = {node: random.normal(size=(2, 2)).astype(np.float32) for node in range(1, 6)}
    first = ArrayRecord({"weight": Array(np.zeros((2, 2), np.float32)), "steps": Array(np.array(7))})

    class Shuffled(Memory):
        def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
            replies = super().send_and_receive(messages)
            return [replies[place] for place in random.permutation(len(replies))]

    found = [
        Robust("geomed", f=1, min_train_nodes=5, fraction_evaluate=0.0)
        .start(Shuffled(5, lambda node, model: with_weight(sent[node])), first, num_rounds=1)
        .arrays["weight"]
        .data
        for _ in range(3)
    ]
    assert found[0] == found[1] == found[2]


def test_mistakes_are_said_before_a_round() -> None:
    with pytest.raises(ConfigError, match="less than half of the 5 clients, got 3; use f <= 2"):
        start(None, rule="ios", f=3)
    with pytest.raises(ConfigError, match="weigh must be equal or examples"):
        Robust("ios", weigh="size")


def test_without_flower_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "byzmesh.integrations.flower")
    monkeypatch.setitem(sys.modules, "flwr.app", None)
    with pytest.raises(MissingExtra, match=r"the Flower strategy needs .* pip install 'byzmesh\[flower\]'"):
        import byzmesh.integrations.flower  # noqa: F401
