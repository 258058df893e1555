"""A PyTorch module bound to data and workers: the task of `bm.problem("torch", ...)`.

On the CPU, models are NumPy arrays (N, D) that share memory with tensors; on another device they are one tensor there.
Rules and local updates work on either without a copy; attacks see a copy on the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.problems.data.split import count_classes, draw_counts
from byzmesh.problems.neural.flat import Layout, flatten
from byzmesh.problems.neural.gradients import Net, batched, borrowed, fastest, loop
from byzmesh.problems.neural.probe import first_line
from byzmesh.problems.neural.samples import Samples, torch_dtype
from byzmesh.rng import BATCH, INITIAL, integers, key
from byzmesh.types import Array, Floats, Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class TorchTask:
    """See `byzmesh.problems.base.Task`.

    factory  makes a fresh module
    net      the module whose architecture, frozen parameters and constant buffers all workers use
    way      how gradients are computed: `batched`, `loop` or `auto`; what: what the choice depends on
    draws    whether the module uses random numbers while training
    classes  number of classes, 0 if the outputs are not one per class
    buffers  whose the buffers are that a forward pass changes: `local`, `shared` or `frozen`; None if there are none
    """

    workers: int
    rows: int
    dtype: np.dtype[Any]
    seed: int
    threads: int
    factory: Callable[[], Any] = field(repr=False)
    net: Net = field(repr=False)
    way: str
    what: dict[str, Any] = field(repr=False)
    init: str
    classes: int
    samples: Samples = field(repr=False)
    draws: bool = False
    buffers: str | None = None
    chosen: dict[int, str] = field(default_factory=dict)
    """Number of rows -> how gradients are computed, once known; a checkpoint keeps it."""

    @property
    def skeleton(self) -> Any:
        """The module: its architecture, frozen parameters and constant buffers."""
        return self.net.module

    @property
    def layout(self) -> Layout:
        """The positions of the trainable parameters in a model's vector."""
        return self.net.layout

    @property
    def dimension(self) -> int:
        """D."""
        return self.layout.dimension + self.net.running.count

    @property
    def running(self) -> int:
        """How many of the last numbers of a model are buffers."""
        return self.net.running.count

    def initial(self, kind: str | None = None) -> Any:
        """(rows, D) first models: `common`, one fresh module for all, or `own`, a fresh one per row."""
        import torch

        makers = [-1] * self.rows if (kind or self.init) == "common" else list(range(self.rows))
        made = {row: self._vector(seeded(self.factory, self.seed, row)) for row in dict.fromkeys(makers)}
        models = torch.stack([made[row] for row in makers])
        return self._out(models.to(self.samples.device, torch_dtype(self.dtype)))

    def _vector(self, module: Any) -> Any:
        import torch

        vector = flatten(module)
        return torch.cat([vector, self.net.running.get(module, vector)]) if self.running else vector

    def batches(self, round: int, rows: Integers) -> tuple[Any, Any]:
        """Samples (R, B, *shape) and targets (R, B) of the rows' batches."""
        return self.samples.batches(round, rows)

    def gradients(self, models: Array, round: int, out: Array | None = None, rows: Integers | None = None) -> Array:
        """(R, D) gradients of the rows' batch losses, without weight decay."""
        chosen = self._rows(models, rows)
        there = self._in(models)
        target = there.new_empty(there.shape) if out is None else self._in(out)
        with self._running():
            x, y = self.batches(round, chosen)
            self._compute(there, x, y, target, self._seeds(chosen, round))
        if out is None:
            made: Array = self._out(target)
            return made
        if target.data_ptr() != _address(out):  # another type, device or layout than the models'
            out[:] = target.cpu().numpy() if isinstance(out, np.ndarray) else target
        return out

    def _compute(self, models: Any, x: Any, y: Any, out: Any, seeds: list[int] | None) -> None:
        if self._way(models, x, y, out) == "batched":
            try:
                batched(self.net, models, x, y, out)
                return
            except (RuntimeError, NotImplementedError) as error:
                if self.way == "batched":
                    raise ConfigError(
                        f"gradients: batched does not work for this module ({first_line(error)}); write loop or auto"
                    ) from error
                self.chosen[len(models)] = "loop"  # it was measured for another module of that name
        loop(self.net, models, x, y, out, seeds)

    def _seeds(self, rows: Integers, round: int) -> list[int] | None:
        """One seed per row for modules that draw random numbers."""
        if not self.draws:
            return None
        draws: list[int] = integers(key(self.seed, BATCH, 3), rows, round, 1, 1 << 31)[:, 0].tolist()
        return draws

    def _way(self, models: Any, x: Any, y: Any, out: Any) -> str:
        if self.way != "auto":
            return self.way
        if self.draws or self.running or len(models) < 2:
            return "loop"
        if len(models) not in self.chosen:
            self.chosen[len(models)] = fastest(self.net, self.what, models, x, y, out)
        return self.chosen[len(models)]

    def losses(self, models: Array, round: int, rows: Integers | None = None) -> Floats:
        """(R, K) loss of candidates (R, K, D) on each row's own batch of the round."""
        import torch

        chosen = self._rows(models, rows)
        there = self._in(models)
        losses = np.empty(tuple(there.shape[:2]))
        with self._running(), torch.no_grad(), borrowed(self.skeleton) as parameters:
            x, y = self.batches(round, chosen)
            seeds = self._seeds(chosen, round)
            for row, candidates in enumerate(there):
                for number, vector in enumerate(candidates):
                    self._point(parameters, vector)
                    if seeds is not None:  # the same draws for all candidates
                        torch.manual_seed(seeds[row])
                    losses[row, number] = float(self.net.loss(self.skeleton(x[row]), y[row]))
        return losses

    def evaluate(self, models: Array) -> dict[str, Floats]:
        """Test `loss` (K,), `accuracy` (K,) for classes, `perplexity` (K,) for text, where a sample's accuracy is that
        of its next tokens, and, under a backdoor, `backdoor` (K,): how often the trigger makes a model see the target
        class in a test image of another class, or give the planted answer in a test window."""
        import torch

        there = self._in(models)
        if there.ndim != 2 or there.shape[1] != self.dimension:
            raise ConfigError(f"models must be rows of {self.dimension} numbers, got shape {tuple(there.shape)}")
        module = self.skeleton
        backdoor = self.samples.backdoor
        loss, right, fooled = np.zeros((3, len(there)))
        total = others = 0
        with self._running(), _evaluating(module), torch.inference_mode(), borrowed(module) as parameters:
            for x, y in self.samples.test():
                stamped = x[:0] if backdoor is None else backdoor.test(x, y)
                total, others = total + len(x), others + len(stamped)
                for number, vector in enumerate(there):
                    self._point(parameters, vector)
                    outputs = module(x)
                    loss[number] += float(self.net.loss(outputs, y)) * len(x)
                    if self.classes:
                        right[number] += float((outputs.argmax(dim=-1) == y).sum()) / (y.numel() / len(y))
                    if backdoor is not None and len(stamped):
                        fooled[number] += backdoor.fooled(module(stamped))
        measures = {"accuracy": right / total} if self.classes else {}
        measures["loss"] = loss / total
        if self.samples.tokens:
            measures["perplexity"] = np.exp(np.minimum(measures["loss"], 700.0))
        if backdoor is not None:
            measures["backdoor"] = fooled / max(1, others)
        return measures

    def class_accuracy(self, models: Array) -> Floats:
        """(K, C) accuracy of models (K, D) on the test samples of each class; NaN for a class that has none."""
        import torch

        there = self._in(models)
        right, total = np.zeros((len(there), self.classes)), np.zeros(self.classes)
        with self._running(), _evaluating(self.skeleton), torch.inference_mode(), borrowed(self.skeleton) as parameters:
            for x, y in self.samples.test():
                total += np.bincount(y.cpu().numpy(), minlength=self.classes)
                for number, vector in enumerate(there):
                    self._point(parameters, vector)
                    seen = y[self.skeleton(x).argmax(dim=1) == y]
                    right[number] += np.bincount(seen.cpu().numpy(), minlength=self.classes)
        return np.divide(right, total, out=np.full_like(right, np.nan), where=total > 0)

    def own_accuracy(self, models: Array, rows: Integers) -> Floats:
        """(K,) fraction of all training samples of each row (K,) that its model (K, D) gets right."""
        import torch

        right, sizes = np.zeros(len(rows)), np.array([len(self.samples.split.share(row)) for row in rows])
        with self._running(), _evaluating(self.skeleton), torch.inference_mode(), borrowed(self.skeleton) as parameters:
            for number, (vector, row) in enumerate(zip(self._in(models), rows, strict=True)):
                self._point(parameters, vector)
                for x, y in self.samples.share(row):
                    right[number] += float((self.skeleton(x).argmax(dim=-1) == y).sum()) / (y.numel() / len(y))
        mean: Floats = right / sizes
        return mean

    def _point(self, parameters: list[Any], vector: Any) -> None:
        for parameter, view in zip(parameters, self.layout.views(vector).values(), strict=True):
            parameter.data = view
        if self.running:
            self.net.running.put(self.skeleton, vector[self.layout.dimension :])

    def local_gradients(self, model: Array) -> Floats:
        """(N, D) gradient at one model of each honest worker's mean loss on all its data."""
        there = self._in(model)[None]
        gradient = np.zeros((self.workers, self.dimension))
        part = there.new_empty(there.shape)
        with self._running():
            for row in range(self.workers):
                for number, (x, y) in enumerate(self.samples.share(row)):
                    loop(self.net, there, x[None], y[None], part, self._seeds(np.array([row]), number))
                    gradient[row] += part[0].cpu().numpy() * (len(x) / len(self.samples.split.share(row)))
        gradient[:, self.layout.dimension :] = 0.0  # buffers
        return gradient

    def full_gradient(self, model: Array) -> Floats:
        """(D,) average of `local_gradients`."""
        gradient: Floats = self.local_gradients(model).mean(axis=0)
        return gradient

    def smoothness(self) -> float:
        """Not known for a module: an error."""
        raise ConfigError("the smoothness of problem torch is not known; certificates of Theorem 1 need softmax")

    def describe(self) -> Integers:
        """(rows, classes) how many samples of each class a row has; one column for numeric targets."""
        labels = self.samples.labels
        return count_classes(self.samples.split, labels if self.classes else labels * 0, max(1, self.classes))

    def draw(self, path: str | Path) -> None:
        """Draw the samples of each row to a file."""
        draw_counts(self.describe(), path)

    def _rows(self, models: Any, rows: Integers | None) -> Integers:
        chosen = np.arange(len(models)) if rows is None else np.asarray(rows, np.int64)
        if models.shape[-1] != self.dimension or len(chosen) != len(models):
            raise ConfigError(
                f"models must be up to {self.rows} rows of {self.dimension} numbers, got {tuple(models.shape)}"
            )
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < self.rows):
            raise ConfigError(f"rows must lie between 0 and {self.rows - 1}, got {chosen.min()} to {chosen.max()}")
        return chosen

    def _in(self, array: Any) -> Any:
        """A tensor on the device; on the CPU it shares memory with a NumPy array."""
        import torch

        if isinstance(array, np.ndarray):
            array = torch.from_numpy(np.ascontiguousarray(array, self.dtype))
        return array.to(self.samples.device, torch_dtype(self.dtype))

    def _out(self, tensor: Any) -> Any:
        return tensor.numpy() if tensor.device.type == "cpu" else tensor

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Use the task's number of threads; restores torch's threads and generators afterwards."""
        import torch

        before = torch.get_num_threads()
        cuda = [self.samples.device] if self.samples.device.type == "cuda" else []
        forked = torch.random.fork_rng(devices=cuda) if self.draws else contextlib.nullcontext()
        torch.set_num_threads(self.threads)
        try:
            with forked:
                yield
        finally:
            torch.set_num_threads(before)


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """The module in evaluation mode."""
    module.eval()
    try:
        yield
    finally:
        module.train()


def _address(array: Any) -> int:
    """The address of an array's first element."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr())


def seeded(factory: Callable[[], Any], seed: int, row: int) -> Any:
    """The fresh module of a row (-1: the common one), whatever the state of torch's generator."""
    import torch

    with torch.random.fork_rng(devices=[]):
        # modules are made on the CPU; torch.manual_seed would also touch the generators of other devices
        torch.default_generator.manual_seed(int(key(seed, INITIAL, row) >> np.uint64(1)))
        return factory()
