"""An NVFlare aggregator: any of our rules combines what the clients send. Needs the extra `nvflare`.

    FedAvg(num_clients=5, num_rounds=10, aggregator=RobustAggregator("ios", f=1))

or in a job's config: {"path": "byzmesh.integrations.nvflare.RobustAggregator", "args": {"rule": "ios", "f": 1}}.

How a rule for workers works on a server is said in `byzmesh.integrations.server`. The global model x, which NVFlare
does not tell an aggregator, is

    differences (params_type DIFF)   0: what clients send are differences from x
    whole models (FULL)              the last result; before the first one `model`, or else the coordinate-wise median
                                     of what arrived

A model counts if its names and shapes are those of x, or, before x is known, those that most clients sent. If too few
arrive, x is returned (differences of 0). Parameters are NumPy arrays or torch tensors; FedAvg's lazy references
(`enable_tensor_disk_offload`) are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from byzmesh.checks import choice
from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.integrations.layout import Layout
from byzmesh.integrations.server import ServerRule
from byzmesh.round import Round
from byzmesh.rules.aggregate import aggregate
from byzmesh.rules.interop import to_host
from byzmesh.types import Array

try:
    from nvflare.apis.fl_constant import FLMetaKey
    from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
    from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
except ImportError as error:
    raise MissingExtra("nvflare", "the NVFlare aggregator") from error


class RobustAggregator(ModelAggregator):
    """A rule in the place of the weighted average.

    rule, f   as for `byzmesh.integrations.server.ServerRule`; f bounds how many of the models of a round are lies
    weigh     "equal", or "steps": what clients claim as NUM_STEPS_CURRENT_ROUND, for rules that use weights
    model     the first global model by name, if clients send whole models
    options   of the rule, by name
    """

    def __init__(
        self,
        rule: str | Mapping[str, Any] = "ios",
        f: int = 1,
        weigh: str = "equal",
        model: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.combine = ServerRule(rule, f, **(options or {}))
        self.weigh = choice("weigh", weigh, ("equal", "steps"))
        self.model: Mapping[str, Any] | None = model
        self.received: dict[str, FLModel] = {}

    def reset_stats(self) -> None:
        """Forget what arrived: a round begins."""
        self.received = {}

    def accept_model(self, model: FLModel) -> None:
        """Keep a client's model; only the first of a client counts in a round."""
        name = str((model.meta or {}).get("client_name", f"client {len(self.received)}"))
        self.received.setdefault(name, model)

    def aggregate_model(self) -> FLModel:
        """The rule's result, of the kind (whole models or differences) that most clients sent."""
        if not self.received:
            raise ConfigError("no client sent a model in this round; see the clients' logs")
        told = [self.received[name] for name in sorted(self.received)]
        kind = Counter(model.params_type for model in told).most_common(1)[0][0]
        arrays = [host_arrays(model.params) if model.params_type == kind else None for model in told]
        whole = kind == ParamsType.FULL
        template = host_arrays(self.model) if whole and self.model is not None else most_common(arrays)
        if template is None:
            raise ConfigError(f"none of the {len(told)} clients sent named arrays")
        layout = Layout.of(template)
        vectors = [None if each is None else layout.vector(each) for each in arrays]
        origin = self._origin(layout, vectors, whole)
        counts = [claim(model) for model in told] if self.weigh == "steps" else None
        number = next((model.current_round for model in told if model.current_round is not None), 0)
        mixed = self.combine(origin, vectors, counts, Round(number=number))
        if mixed is None:
            self._too_few(whole)
        result = layout.arrays(origin if mixed is None else mixed, template)
        tensors = Counter(kind_of_arrays(model.params) for model in told).most_common(1)[0][0] == "torch"
        params = {name: as_tensor(array) for name, array in result.items()} if tensors else result
        if whole:
            self.model = params
        return FLModel(params=params, params_type=kind, meta={})

    def _origin(self, layout: Layout, vectors: list[Array | None], whole: bool) -> Array:
        """(D,) the global model, as far as it is known."""
        usable = [vector for vector in vectors if vector is not None and np.isfinite(vector).all()]
        if whole and self.model is not None:
            known = layout.vector(host_arrays(self.model))
            if known is not None:
                return known
        if whole and usable:
            middle: Array = aggregate("coomed", usable[0], np.stack(usable)[1:])
            return middle
        return np.zeros(sum(int(np.prod(shape)) for shape in layout.shapes.values()), layout.dtype)

    def _too_few(self, whole: bool) -> None:
        if whole and self.model is None:
            raise ConfigError(
                f"{len(self.received)} models are too few for f = {self.combine.f}, and there is none to keep; "
                "wait for more clients, or pass model="
            )
        if self.fl_ctx is not None:
            self.warning(f"{len(self.received)} models are too few for f = {self.combine.f}: the model stays")


def host_arrays(params: Any) -> dict[str, Array] | None:
    """Parameters as NumPy arrays by name; None if they are anything else."""
    if not isinstance(params, Mapping):
        return None
    try:
        return {str(name): to_host(array) for name, array in params.items()}
    except Exception:  # whatever a hostile message makes the conversion do, it is not a model
        return None


def kind_of_arrays(params: Any) -> str:
    """The package of the first parameter: numpy, torch, ..."""
    first = next(iter(params.values()), None) if isinstance(params, Mapping) else None
    return type(first).__module__.split(".")[0]


def as_tensor(array: Array) -> Any:
    """A torch tensor with the numbers of an array."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


def most_common(models: list[dict[str, Array] | None]) -> dict[str, Array] | None:
    """The first of the models whose names and shapes most of them have."""
    forms = [None if model is None else tuple((name, array.shape) for name, array in model.items()) for model in models]
    known = Counter(form for form in forms if form is not None)
    return models[forms.index(known.most_common(1)[0][0])] if known else None


def claim(model: FLModel) -> float:
    """How many steps a client says it took; 0 if it is not a number."""
    told = (model.meta or {}).get(FLMetaKey.NUM_STEPS_CURRENT_ROUND, 0.0)
    return float(told) if isinstance(told, int | float) else 0.0
