"""The NVFlare aggregator: NVFlare's own FedAvg controller runs with it, with clients in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.abstract.aggregator import Aggregator
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.app_common.workflows.fedavg import FedAvg

from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.integrations.nvflare import RobustAggregator

TARGET = np.array([1.0, -2.0, 3.0], np.float32)


class InMemory(FedAvg):
    """NVFlare's controller, whose clients answer at once: reply(client number, model) -> FLModel."""

    def __init__(self, reply: Callable[[int, FLModel], FLModel], clients: int, rounds: int, **settings: Any) -> None:
        first = {"w": np.zeros(3, np.float32), "n": np.array(7)}
        super().__init__(num_clients=clients, num_rounds=rounds, model=first, **settings)
        self.reply, self.fl_ctx = reply, FLContext()
        self.saved: FLModel | None = None

    def event(self, *args: Any, **kwargs: Any) -> None: ...
    def fire_event_with_data(self, *args: Any, **kwargs: Any) -> None: ...
    def info(self, *args: Any, **kwargs: Any) -> None: ...
    def get_num_standing_tasks(self) -> int:
        return 0

    def sample_clients(self, num_clients: int | None = None) -> list[str]:
        return [f"site-{number}" for number in range(self.num_clients)]

    def send_model(self, task_name: str, targets: list[str], data: FLModel, callback: Any, **settings: Any) -> None:
        for number, name in enumerate(targets):
            answer = self.reply(number, data)
            answer.meta = {**(answer.meta or {}), "client_name": name}
            callback(answer)

    def save_model(self, model: FLModel) -> None:
        self.saved = model


def trained(model: FLModel, kind: ParamsType, as_torch: bool) -> FLModel:
    """An honest answer: half of the way to the target."""
    step = 0.5 * (TARGET - np.asarray(model.params["w"]))
    weight = step if kind == ParamsType.DIFF else np.asarray(model.params["w"]) + step
    counter = np.array(0 if kind == ParamsType.DIFF else 7)
    params = {"w": torch.tensor(weight) if as_torch else weight, "n": torch.tensor(counter) if as_torch else counter}
    return FLModel(params=params, params_type=kind, meta={"NUM_STEPS_CURRENT_ROUND": 10})


LIES: dict[str, Callable[[], FLModel]] = {
    "far": lambda: FLModel(params={"w": np.full(3, 1e30, np.float32), "n": np.array(7)}),
    "far difference": lambda: FLModel(params={"w": np.full(3, -1e9, np.float32)}, params_type="DIFF"),
    "many steps": lambda: FLModel(params={"w": np.full(3, 9.0, np.float32)}, meta={"NUM_STEPS_CURRENT_ROUND": 10**12}),
    "NaN": lambda: FLModel(params={"w": np.full(3, np.nan, np.float32)}),
    "shape": lambda: FLModel(params={"w": np.zeros(4, np.float32)}),
    "names": lambda: FLModel(params={"v": np.zeros(3, np.float32)}),
    "text": lambda: FLModel(params={"w": np.array(["a", "b", "c"])}),
    "no mapping": lambda: FLModel(params=[np.zeros(3)]),
}


@pytest.mark.parametrize("kind", [ParamsType.FULL, ParamsType.DIFF])
@pytest.mark.parametrize("lie", LIES)
def test_fedavg_learns_whatever_one_client_sends(lie: str, kind: ParamsType) -> None:
    for weigh in ("equal", "steps"):
        controller = InMemory(
            lambda number, model: LIES[lie]() if number == 0 else trained(model, kind, as_torch=False),
            clients=5,
            rounds=8,
            aggregator=RobustAggregator("ios", f=1, weigh=weigh),
        )
        controller.run()
        assert controller.saved is not None
        np.testing.assert_allclose(controller.saved.params["w"], TARGET, atol=0.03)
        assert int(controller.saved.params["n"]) == 7


def test_the_plain_mean_does_not_learn() -> None:
    plain = RobustAggregator("mean", f=0)
    lie = LIES["far difference"]
    controller = InMemory(
        lambda number, model: lie() if number == 0 else trained(model, ParamsType.DIFF, False), 5, 2, aggregator=plain
    )
    controller.run()
    assert controller.saved is not None and np.abs(controller.saved.params["w"]).max() > 1e6


def test_tensors_come_back_as_tensors() -> None:
    controller = InMemory(
        lambda number, model: trained(model, ParamsType.FULL, True), 3, 2, aggregator=RobustAggregator("krum", f=0)
    )
    controller.run()
    assert controller.saved is not None and isinstance(controller.saved.params["w"], torch.Tensor)


def test_it_is_an_aggregator_for_scatter_and_gather_too() -> None:
    """The older interface: accept(shareable), aggregate(context), reset(context)."""
    aggregator, context = RobustAggregator("coomed", f=1, model={"w": np.zeros(3, np.float32)}), FLContext()
    assert isinstance(aggregator, Aggregator)
    for number in range(3):
        sent = FLModel(
            params={"w": TARGET * number}, params_type=ParamsType.FULL, meta={"client_name": f"site-{number}"}
        )
        assert aggregator.accept(FLModelUtils.to_shareable(sent), context)
    found = FLModelUtils.from_shareable(aggregator.aggregate(context))
    np.testing.assert_allclose(found.params["w"], TARGET)
    aggregator.reset(context)
    assert not aggregator.received


def test_with_too_few_models_the_global_one_stays() -> None:
    known = RobustAggregator("ios", f=1, model={"w": TARGET})
    fresh = RobustAggregator("ios", f=1)
    for aggregator in (known, fresh):
        aggregator.accept_model(FLModel(params={"w": np.zeros(3, np.float32)}, meta={"client_name": "a"}))
        aggregator.accept_model(FLModel(params={"w": np.zeros(3, np.float32)}, meta={"client_name": "a"}))
        assert len(aggregator.received) == 1  # one client, one model
    np.testing.assert_allclose(known.aggregate_model().params["w"], TARGET)
    with pytest.raises(ConfigError, match="too few for f = 1"):
        fresh.aggregate_model()
    with pytest.raises(ConfigError, match="no client sent a model"):
        RobustAggregator().aggregate_model()


def test_without_nvflare_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "byzmesh.integrations.nvflare")
    monkeypatch.setitem(sys.modules, "nvflare.apis.fl_constant", None)
    with pytest.raises(MissingExtra, match=r"the NVFlare aggregator needs .* pip install 'byzmesh\[nvflare\]'"):
        import byzmesh.integrations.nvflare  # noqa: F401
