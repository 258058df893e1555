"""Gradients of one module at many models, two ways that give the same numbers up to rounding.

    batched   torch.func.vmap over the workers: few large operations; rows are taken in chunks of bounded memory. The
              operations are recorded once (torch.fx) and replayed, which avoids the transforms in every round
    loop      one worker after another, with its row of the models as the module's parameters and its row of the
              gradients as their `.grad`: no copies; best for convolutions on a CPU, needed for modules with dropout

Which is faster depends on module, batch and machine. `fastest` measures once and writes the answer to the cache folder,
so that later processes compute the same bits; the first process to write decides.

    models, out   (R, D)        x (R, B, ...), y (R, B)
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from byzmesh.files import create
from byzmesh.problems.data.cache import cache_dir
from byzmesh.problems.neural.buffers import Running
from byzmesh.problems.neural.flat import Layout

WAYS = ("batched", "loop")
MEMORY = 1 << 28
"""The most bytes of intermediate results in batched gradients."""
_REPEATS = 3


@dataclass(frozen=True, kw_only=True)
class Net:
    """A module whose parameters are taken from rows of models.

    module   in training mode, with its own frozen parameters and buffers
    loss     (outputs (B, ...), targets (B,)) -> mean loss
    saved    bytes that one row's batch keeps for the backward pass
    running  buffers that are part of a model, after its parameters; a "gradient" there is the old value less the new
    traced   shapes -> recorded operations (models, x, y) -> gradients in the order of the layout
    """

    module: Any
    layout: Layout
    loss: Callable[[Any, Any], Any]
    saved: int
    running: Running = field(default_factory=Running)
    traced: dict[Any, Callable[[Any, Any, Any], Sequence[Any]]] = field(default_factory=dict, repr=False)


@contextlib.contextmanager
def borrowed(module: Any) -> Iterator[list[Any]]:
    """The trainable parameters, to be pointed at other memory; restored afterwards."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    own = [parameter.data for parameter in parameters]
    try:
        yield parameters
    finally:
        for parameter, data in zip(parameters, own, strict=True):
            parameter.data, parameter.grad = data, None


def loop(net: Net, models: Any, x: Any, y: Any, out: Any, seeds: Sequence[int] | None = None) -> None:
    """Row by row. `seeds` (R,) seed torch's generator before each row, for modules that draw."""
    import torch

    out.zero_()
    with borrowed(net.module) as parameters:
        for row in range(len(models)):
            values, gradients = net.layout.views(models[row]).values(), net.layout.views(out[row]).values()
            for parameter, value, gradient in zip(parameters, values, gradients, strict=True):
                parameter.data, parameter.grad = value, gradient
            if seeds is not None:
                torch.manual_seed(seeds[row])
            if net.running.count:
                net.running.put(net.module, models[row, net.layout.dimension :])
            net.loss(net.module(x[row]), y[row]).backward()
            if net.running.count:
                before = models[row, net.layout.dimension :]
                out[row, net.layout.dimension :] = before - net.running.get(net.module, before)


def batched(net: Net, models: Any, x: Any, y: Any, out: Any) -> None:
    """All rows at once, in chunks that keep at most `MEMORY` bytes."""
    rows = max(1, MEMORY // max(1, net.saved))
    with warnings.catch_warnings():  # for some operations vmap is slow: `fastest` measures that
        warnings.filterwarnings("ignore", "There is a performance drop")
        _in_chunks(net, models, x, y, out, rows)


def _in_chunks(net: Net, models: Any, x: Any, y: Any, out: Any, rows: int) -> None:
    for first in range(0, len(models), rows):
        part = slice(first, first + rows)
        given = models[part], x[part], y[part]
        shapes = tuple(tensor.shape for tensor in given)
        if shapes not in net.traced:
            net.traced[shapes] = _recorded(net, *given)
        for view, gradient in zip(net.layout.views(out[part]).values(), net.traced[shapes](*given), strict=True):
            view.copy_(gradient)


def _recorded(net: Net, models: Any, x: Any, y: Any) -> Callable[[Any, Any, Any], Sequence[Any]]:
    """(models, x, y) -> gradients per parameter: the batched operations, recorded if torch.fx can."""
    from torch.func import functional_call, grad, vmap
    from torch.fx.experimental.proxy_tensor import make_fx

    def loss(parameters: dict[str, Any], x: Any, y: Any) -> Any:
        return net.loss(functional_call(net.module, parameters, (x,)), y)

    every = vmap(grad(loss))

    def gradients(models: Any, x: Any, y: Any) -> tuple[Any, ...]:
        found = every(net.layout.views(models), x, y)
        return tuple(found[name] for name in net.layout.names)

    gradients(models, x, y)  # an error of vmap itself must not be hidden by what follows
    try:
        with _one_mode():
            recorded: Callable[[Any, Any, Any], Sequence[Any]] = make_fx(gradients)(models, x, y)
    except Exception:  # recording is only an optimisation, and modules make it fail in many ways
        return gradients
    return recorded


def _one_mode() -> AbstractContextManager[Any]:
    """torch.fx notes the shape of every result in a mode: in one for all, since a new one keeps the stack of calls."""
    try:
        from torch._guards import TracingContext, tracing  # private: without them recording takes longer
        from torch._subclasses.fake_tensor import FakeTensorMode
    except ImportError:
        return contextlib.nullcontext()
    mode: AbstractContextManager[Any] = tracing(TracingContext(FakeTensorMode()))
    return mode


def fastest(net: Net, what: dict[str, Any], models: Any, x: Any, y: Any, out: Any) -> str:
    """The faster way for this module, these shapes and this machine: from the cache, or measured now.

    what  everything else that the answer depends on, besides the shapes
    """
    import torch

    facts = {
        **what,
        "shapes": [list(net.layout.shapes), list(models.shape), list(x.shape), str(models.dtype), str(models.device)],
        "machine": [torch.__version__, torch.get_num_threads(), platform.machine(), _processor()],
    }
    digest = hashlib.blake2b(json.dumps(facts, sort_keys=True, default=str).encode(), digest_size=12).hexdigest()
    path = cache_dir() / "ways" / digest
    with contextlib.suppress(OSError):
        known = path.read_text()
        if known in WAYS:
            return known
    seconds = {}
    for name, way in (("loop", loop), ("batched", batched)):
        try:
            seconds[name] = min(_timed(way, net, models, x, y, out) for _ in range(_REPEATS))
        except (RuntimeError, NotImplementedError):  # vmap does not know every operation
            if name == "loop":
                raise
    return _agree(path, min(seconds, key=lambda name: seconds[name]))


def _timed(way: Callable[..., None], *arguments: Any) -> float:
    import torch

    began = time.perf_counter()
    way(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


def _agree(path: Path, answer: str) -> str:
    """Write the answer unless another process was faster; return the answer that counts."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            create(path, answer)
        except FileExistsError:
            first = path.read_text()
            return first if first in WAYS else answer
    except OSError:
        pass  # a cache that cannot be written costs a measurement in the next process
    return answer


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
