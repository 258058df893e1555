"""`bm.problem("torch", ...)`: options in, a bound `TorchTask` out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.checks import choice, whole
from byzmesh.errors import ConfigError
from byzmesh.problems.base import Problem, problems
from byzmesh.problems.data.datasets import Dataset
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.data.split import BATCHINGS, Sites, check_batch, split_samples
from byzmesh.problems.neural.augment import augmentations, canonical_augmentations
from byzmesh.problems.neural.backdoor import Backdoor, phrase, square
from byzmesh.problems.neural.base import canonical_base, load_base, read_base
from byzmesh.problems.neural.buffers import POLICIES, Running, freeze, refused, running_of
from byzmesh.problems.neural.data import data_label, held_data, sample_shape
from byzmesh.problems.neural.flat import layout_of
from byzmesh.problems.neural.gradients import WAYS, Net
from byzmesh.problems.neural.lora import adapters, canonical_adapter
from byzmesh.problems.neural.modules import Factory, canonical_module, import_torch, label, make_factory
from byzmesh.problems.neural.probe import first_line, probe
from byzmesh.problems.neural.samples import Samples, torch_dtype
from byzmesh.problems.neural.task import TorchTask, seeded
from byzmesh.problems.neural.text import tokens_of

LOSSES = ("cross-entropy", "mse")
INITS = ("common", "own")
PRECISIONS = ("bfloat16", "float16")


@problems.register("torch", aliases=("neural", "module"))
def torch_problem(
    module: Any = "cnn",
    loss: Any = "cross-entropy",
    dataset: Any = "mnist",
    data_dir: str | None = None,
    partition: str | Mapping[str, Any] = "iid",
    batch: int = 32,
    batching: str = "uniform",
    init: str = "common",
    augment: Sequence[Any] = (),
    test_samples: int | None = None,
    gradients: str = "auto",
    device: str = "cpu",
    base: Any = None,
    adapter: Any = None,
    buffers: str | None = None,
    precision: str | None = None,
) -> Problem:
    """Any PyTorch module; needs the extra `torch`.

    module        `linear`, `mlp`, `cnn`, `resnet8`, `gpt`, `package.module:function`, or a function that makes one
    loss          `cross-entropy`, `mse`, or a function (outputs, targets) -> mean loss
    dataset       a name, a path, a mapping with `text` (see byzmesh.problems.neural.text), a torch data set or a pair
                  (inputs, targets) of arrays (every fifth sample is for testing), or a pair (train, test) of data sets;
                  whole numbers reach the module as whole numbers
    init          `common`: all workers start from the same fresh module; `own`: each from its own
    augment       changes of training images: `flip`, `{name: shift, pixels: 2}`, or `Augmentation` objects
    test_samples  evaluate on only this many test samples, the first ones (default: all)
    gradients     `batched`, `loop`, or `auto`: the faster one, measured once per machine
    device        `cpu`, `cuda`, `cuda:1`
    base          a safetensors file with the weights to start from (byzmesh.problems.neural.base)
    adapter       `lora`, alone or with options: trains what it adds to the module (byzmesh.problems.neural.lora)
    buffers       whose running statistics are: `local`, `shared` or `frozen` (byzmesh.problems.neural.buffers)
    precision     `bfloat16` or `float16`: large products in it, all else in the models' float32 (torch.autocast)
    """
    options = {
        **dict(locals()),
        "module": canonical_module(module),
        "loss": loss if isinstance(loss, str) else label(loss),
        "dataset": data_label(dataset),
        "augment": canonical_augmentations(augment),
        "base": canonical_base(base),
        "adapter": canonical_adapter(adapter),
    }
    torch = import_torch()
    if isinstance(loss, str):
        choice("loss", loss, LOSSES)
    partitions.build(partition)
    whole("batch", batch, 1)
    choice("batching", batching, BATCHINGS)
    choice("init", init, INITS)
    choice("gradients", gradients, ("auto", *WAYS))
    if test_samples is not None:
        whole("test_samples", test_samples, 1)
    if buffers is not None:
        choice("buffers", buffers, POLICIES)
    if precision is not None:
        choice("precision", precision, PRECISIONS)
    changes = tuple(augmentations.build(item) for item in augment)
    where = _device(torch, device)

    def bind(
        *,
        workers: int,
        seed: int,
        dtype: Any,
        liars: int,
        threads: int,
        poison: Mapping[str, Any] | None = None,
        sites: Sites | None = None,
    ) -> TorchTask:
        data = held_data(dataset, data_dir)
        shape = sample_shape(dataset, data)
        if changes and len(shape) != 3:
            raise ConfigError(f"augment needs images, the samples of {data.name} have shape {shape}; leave it out")
        _check_poison(poison, data.tokens)
        mean_loss = loss if callable(loss) else _losses(torch, data, loss)
        factory = _prepared(make_factory(module, shape, data.classes or 1), options["base"], adapter)
        try:
            skeleton = seeded(factory, seed, -1)
        except TypeError as error:
            raise ConfigError(f"module {options['module']['name']} cannot be made: {first_line(error)}") from error
        if not isinstance(skeleton, torch.nn.Module):
            raise ConfigError(f"module must return a torch.nn.Module, got {type(skeleton).__name__}")
        skeleton = _one_tensor(skeleton.to(where, torch_dtype(dtype)).train())
        if precision is not None:
            _mix_precision(torch, skeleton, where, precision, dtype)
        split = split_samples(
            partition,
            data.train_y,
            np.arange(len(data.train_y)),
            mirror=data.classes - 1 if data.classes else float(data.train_y.min() + data.train_y.max()),
            workers=workers,
            liars=liars,
            seed=seed,
            sites=sites,
        )

        check_batch(split, batch, batching)

        def there(array: Any) -> Any:
            return torch.from_numpy(np.ascontiguousarray(array)).to(where)

        def planted(poison: Mapping[str, Any] | None) -> Backdoor | None:
            if poison is None:
                return None
            if poison["kind"] == "phrase":
                return phrase(poison, lambda text: tokens_of(text, dataset), shape[0], data.classes, there)
            white = data.scale * float(data.train_x.max()) + data.offset
            return square(poison, shape, data.classes, white)

        kind = torch.int64 if data.classes else torch_dtype(dtype)
        samples = Samples(
            split=split,
            seed=seed,
            batch=batch,
            batching=batching,
            shape=shape,
            dtype=dtype,
            device=where,
            scale=data.scale,
            offset=data.offset,
            labels=data.train_y,
            train_x=there(data.train_x),
            train_y=there(data.train_y).to(kind),
            test_x=there(data.test_x[:test_samples]),
            test_y=there(data.test_y[:test_samples]).to(kind),
            augment=changes,
            whole=data.whole,
            tokens=data.tokens,
            backdoor=planted(poison),
        )
        task = TorchTask(
            workers=workers,
            rows=workers + liars,
            dtype=dtype,
            seed=seed,
            threads=threads,
            factory=factory,
            net=Net(module=skeleton, layout=layout_of(skeleton), loss=mean_loss, saved=0),
            way=gradients,
            what={key: options[key] for key in ("module", "loss", "adapter") if options[key] is not None},
            init=init,
            classes=data.classes,
            samples=samples,
            buffers=buffers,
        )
        return _probed(task, isinstance(loss, str) and loss == "cross-entropy")

    return Problem("torch", options, bind, images=True, sampled=False)


def _one_tensor(module: Any) -> Any:
    """The module, which returns the `logits` of what it returned before, as those of Hugging Face call them."""
    inner = module.forward

    def forward(*given: Any) -> Any:
        made = inner(*given)
        return getattr(made, "logits", made)

    module.forward = forward
    return module


def _mix_precision(torch: Any, module: Any, where: Any, precision: str, dtype: np.dtype[Any]) -> None:
    """Let a module's forward pass use products of a lower precision; parameters, gradients and outputs keep theirs."""
    if dtype != np.float32:
        raise ConfigError(f"precision: {precision} goes with dtype float32, got {dtype}; leave one of them out")
    inner, lower = module.forward, getattr(torch, precision)

    def forward(*given: Any) -> Any:
        with torch.autocast(where.type, dtype=lower):
            return inner(*given).float()

    module.forward = forward


def _check_poison(poison: Mapping[str, Any] | None, text: bool) -> None:
    """An error if what is planted does not fit the data."""
    if poison is not None and text != (poison["kind"] == "phrase"):
        if text:
            raise ConfigError("attack backdoor puts pixels on images, and a text has none; use trigger-phrase")
        raise ConfigError("attack trigger-phrase needs text, give dataset: {text: ...}; for images use backdoor")


def _prepared(factory: Factory, base: Mapping[str, str] | None, adapter: Any) -> Factory:
    """A factory whose modules start from a base and have adapters."""
    if base is None and adapter is None:
        return factory
    tensors = None if base is None else read_base(base)

    def make() -> Any:
        made = factory()
        if base is not None and tensors is not None:
            made = load_base(made, tensors, base["file"])
        return made if adapter is None else adapters.build(adapter).adapt(made)

    return make


def _probed(task: TorchTask, cross_entropy: bool) -> TorchTask:
    """The task, completed by what one batch shows about its module."""
    x, y = task.batches(0, np.zeros(1, np.int64))
    if task.samples.tokens:
        x[0, 0, 0] = task.classes - 1  # the embedding must have them all
    shape = (*y[0].shape, task.classes) if cross_entropy else ()
    seen = probe(task.skeleton, x[0], y[0], task.net.loss, shape)
    running = Running()
    if seen.changed and task.buffers is None:
        raise refused(task.skeleton, seen.changed[0])
    if not seen.changed and task.buffers is not None:
        raise ConfigError(
            f"buffers: {task.buffers} is for modules that change buffers, this one does not; leave it out"
        )
    if task.buffers == "frozen":
        freeze(task.skeleton, seen.changed)
        seen = probe(task.skeleton, x[0], y[0], task.net.loss, shape)
        if seen.changed:
            raise ConfigError(
                f"buffers: frozen does not work, {seen.changed[0]!r} changes in evaluation mode; use local"
            )
    elif task.buffers is not None:
        running = running_of(task.skeleton, seen.changed)
        if task.way == "batched":
            raise ConfigError(f"gradients: batched does not go with buffers: {task.buffers}; use loop")
    if seen.draws and task.way == "batched":
        raise ConfigError("gradients: batched does not go with a module that draws random numbers (dropout); use loop")
    by_class = task.classes if seen.outputs == (*y[0].shape, task.classes) else 0
    if task.samples.backdoor is not None and not by_class:
        raise ConfigError("attack backdoor needs class labels and a module with one output per class")
    return replace(task, net=replace(task.net, saved=seen.saved, running=running), draws=seen.draws, classes=by_class)


def _device(torch: Any, device: str) -> Any:
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise ConfigError(f"device must be cpu, cuda or cuda:N, got {device!r}") from None
    if chosen.type not in ("cpu", "cuda"):
        raise ConfigError(f"device must be cpu, cuda or cuda:N, got {device!r}")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {device!r} is not available: PyTorch finds no CUDA; use cpu")
    return chosen


def _losses(torch: Any, data: Dataset, name: str) -> Any:
    functions = torch.nn.functional
    if name == "cross-entropy":
        if data.classes < 2:
            raise ConfigError(f"loss cross-entropy needs class labels, {data.name} has numeric targets; use mse")
        if data.tokens:
            return lambda outputs, targets: functions.cross_entropy(outputs.flatten(0, 1), targets.flatten())
        return functions.cross_entropy
    return lambda outputs, targets: functions.mse_loss(outputs.reshape(len(outputs)), targets.to(outputs.dtype))
