"""Robust aggregation of modules in your own PyTorch training loop. Needs the extra `torch`.

    vector   (D,) a module's trainable parameters, in the order of `module.named_parameters()`, shared weights once
    message  a `state_dict` as a neighbour sent it; only the trainable parameters in it are read

    optimiser.step()
    bm.torch.aggregate("ios", module, received_state_dicts, f=1)

Frozen parameters and buffers (BatchNorm's running statistics) are not aggregated: they stay the module's own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.problems.base import Task
from byzmesh.problems.linear.task import LinearTask
from byzmesh.problems.neural import flat
from byzmesh.problems.neural.lora import merged
from byzmesh.problems.neural.modules import import_torch
from byzmesh.problems.neural.task import TorchTask
from byzmesh.rules import aggregate as api
from byzmesh.rules.base import Rule

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["aggregate", "flatten", "load", "state_dict"]


def flatten(module: nn.Module) -> Tensor:
    """The trainable parameters as one detached tensor (D,): a copy.

    >>> import torch
    >>> flatten(torch.nn.Linear(3, 2)).shape
    torch.Size([8])
    """
    import_torch("bm.torch.flatten")
    return flat.flatten(module)


def load(module: nn.Module, vector: Any) -> None:
    """Write a vector (D,), tensor or array, into the trainable parameters.

    >>> import torch
    >>> module = torch.nn.Linear(1, 1)
    >>> load(module, [3.0, -1.0])
    >>> module(torch.ones(1)).item()
    2.0
    """
    import_torch("bm.torch.load")
    flat.load(module, vector)


def aggregate(
    rule: str | Rule | Mapping[str, Any],
    module: nn.Module,
    received_state_dicts: Iterable[Any],
    /,
    weights: npt.ArrayLike | None = None,
    f: int = 1,
    *,
    in_blocks: int | None = None,
    **options: Any,
) -> list[int]:
    """Aggregate a module's trainable parameters with those its neighbours sent; the result is written into the module.

    received_state_dicts  what the d neighbours sent, in the order of sender ids; None for a missing message
    weights, f, options   as in `bm.aggregate`: (d + 1,) mixing weights, own first; the bound on lies; `previous`,
                          `centre` (vectors as of `flatten`), `round`, `loss`, and the rule's own options
    in_blocks             for large modules: so many parameters at a time, without a copy of the module or the messages

    A message that is not a mapping, lacks a trainable parameter, or has one that is not a dense tensor of the module's
    shape and dtype with finite numbers counts as silence, with a `bm.BadMessage` warning: its weight goes to your own
    parameters. Other entries are ignored. Returns the positions of the silent messages.

    >>> import torch
    >>> module = torch.nn.Linear(1, 1)
    >>> load(module, [0.0, 0.0])
    >>> def message(weight, bias):
    ...     return {"weight": torch.tensor([[weight]]), "bias": torch.tensor([bias])}
    >>> aggregate("ios", module, [message(3.0, 0.0), message(0.0, 3.0), message(99.0, 99.0)], f=1)
    []
    >>> flatten(module)
    tensor([1., 1.])
    """
    torch = import_torch("bm.torch.aggregate")
    if isinstance(received_state_dicts, Mapping) or not isinstance(received_state_dicts, Iterable):
        raise ConfigError(
            f"received_state_dicts must be a list with one state_dict per neighbour, "
            f"got {type(received_state_dicts).__name__}"
        )
    if in_blocks is not None:
        return _in_blocks(torch, rule, module, list(received_state_dicts), weights, f, in_blocks, options)
    own = flat.flatten(module)
    messages, silent = _rows(torch, module, list(received_state_dicts), own)
    flat.load(module, api.aggregate(rule, own, messages, weights, f, **options))
    return silent


def _in_blocks(
    torch: Any,
    rule: Any,
    module: nn.Module,
    received: Sequence[Any],
    weights: npt.ArrayLike | None,
    f: int,
    block: int,
    options: dict[str, Any],
) -> list[int]:
    """`aggregate` a block of parameters at a time, in the module's own memory."""
    layout, parameters = flat.layout_of(module), dict(module.named_parameters())
    own = [parameters[name] for name in layout.names]
    kinds = {parameter.dtype for parameter in own}
    if len(kinds) > 1 or not all(parameter.is_contiguous() for parameter in own):
        raise ConfigError("in_blocks needs contiguous parameters of one dtype; leave it out for this module")
    messages = [
        flat.Spanning([message[name].contiguous() for name in layout.names])
        if isinstance(message, Mapping)
        and all(_fits(torch, message.get(name), parameters[name]) for name in layout.names)
        else None
        for message in received
    ]
    bounds = {name: options.pop(name) for name in ("b", "round") if name in options}
    with torch.no_grad():
        vector = flat.Spanning(own)
        return api.aggregate_blocks(
            api.rule(rule, **options),
            vector,
            messages,
            vector,
            weights=weights,
            f=None if "b" in bounds else f,
            dtype="float64" if kinds == {torch.float64} else "float32",
            block=whole("in_blocks", block, 1),
            **bounds,
        )


def state_dict(task: Task, vector: Any) -> dict[str, Tensor]:
    """The `state_dict` of one worker's vector (D,), for `load_state_dict` of a module like the task's.

    task  of problem "torch": trained parameters from the vector, frozen ones and buffers as the task has them,
          adapters merged into the layers they belong to; of
          softmax, logistic and least-squares: `weight` (C, F) and `bias` (C,), as `torch.nn.Linear` calls them

    >>> import byzmesh as bm, torch
    >>> run = bm.prepare(problem="softmax", network={"name": "ring", "n": 5}, rounds=0)
    >>> torch.nn.Linear(784, 10).load_state_dict(bm.torch.state_dict(run.task, run.models[3]))
    <All keys matched successfully>
    """
    torch = import_torch("bm.torch.state_dict")
    vector = torch.as_tensor(vector).detach()
    if isinstance(task, LinearTask):
        if tuple(vector.shape) != (task.dimension,):
            raise ConfigError(f"vector must have the task's {task.dimension} numbers, got shape {tuple(vector.shape)}")
        return {name: part.clone(memory_format=torch.contiguous_format) for name, part in task.layers(vector).items()}
    if not isinstance(task, TorchTask):
        raise ConfigError(
            f"{type(task).__name__} has no layers; a state_dict needs problem torch, softmax, logistic or least-squares"
        )
    module = copy.deepcopy(task.skeleton)
    own = task.layout.dimension
    flat.load(module, vector[:own])
    task.net.running.put(module, vector[own:])
    return merged(module)


def _rows(torch: Any, module: nn.Module, received: Sequence[Any], own: Tensor) -> tuple[Tensor, list[int]]:
    """(d, D) messages as vectors, NaN for unusable ones, and the positions of these; makes only one copy."""
    layout = flat.layout_of(module)
    parameters = dict(module.named_parameters())
    messages = torch.empty((len(received), layout.dimension), dtype=own.dtype, device=own.device)
    silent = []
    for sender, (message, row) in enumerate(zip(received, messages)):
        if isinstance(message, Mapping) and all(
            _fits(torch, message.get(name), parameters[name]) for name in layout.names
        ):
            for name, view in layout.views(row).items():
                view.copy_(message[name].detach())
            if all(math.isfinite(end) for end in row.aminmax()):  # NaN reaches both; isfinite(row) is 20 times slower
                continue
        row.fill_(torch.nan)  # `bm.aggregate` treats this as silence
        silent.append(sender)
    return messages, silent


def _fits(torch: Any, value: Any, parameter: Tensor) -> bool:
    """Whether an entry is a tensor like the parameter; it may be on another device."""
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and not (value.is_meta or value.is_nested)
        and value.dtype == parameter.dtype
        and value.shape == parameter.shape
    )
