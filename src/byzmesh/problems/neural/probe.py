"""Runs a module once on the data to learn its outputs, its memory, and whether it can be trained here.

running statistics   (BatchNorm, InstanceNorm with track_running_stats, any buffer that a forward pass changes) need
                     a policy: byzmesh.problems.neural.buffers
randomness           (dropout) shows in torch's generators; such modules use `loop`, seeded per worker
outputs              must be (B, classes) for class labels, (B, T, tokens) for text
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byzmesh.errors import ConfigError


@dataclass(frozen=True)
class Probed:
    """What a probe learned about a module.

    saved    bytes kept for the backward pass of one batch
    draws    whether the module uses random numbers while training
    outputs  shape of the outputs of one batch
    changed  names of the buffers that it changed
    """

    saved: int
    draws: bool
    outputs: tuple[int, ...]
    changed: tuple[str, ...]


def probe(module: Any, x: Any, y: Any, loss: Any, expected: tuple[int, ...]) -> Probed:
    """Run a module in training mode on one batch x (B, ...), y (B,); parameters and buffers stay as they are.

    expected  shape of the outputs; (): any
    """
    import torch

    name = type(module).__name__
    buffers = {key: value.clone() for key, value in module.named_buffers()}
    saved: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        saved[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    cuda = [x.device] if x.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        generators = _generators(torch, cuda)
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                outputs = module(x)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ConfigError(
                f"module {name} does not take samples of shape {tuple(x.shape[1:])}: {first_line(error)}; "
                "fit its first layer"
            ) from error
        changed = [key for key, value in module.named_buffers() if not torch.equal(value, buffers[key])]
        with torch.no_grad():
            for key in changed:
                module.get_buffer(key).copy_(buffers[key])
        if not isinstance(outputs, torch.Tensor):
            raise ConfigError(f"module {name} returns a {type(outputs).__name__}; it must return one tensor")
        if expected and tuple(outputs.shape) != expected:
            raise ConfigError(
                f"module {name} gives outputs of shape {tuple(outputs.shape)} for {len(x)} samples, the data have "
                f"{expected[-1]} classes; make its last layer {expected[-1]} wide"
            )
        try:
            value = loss(outputs, y)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ConfigError(
                f"loss cannot be computed from outputs of shape {tuple(outputs.shape)} and targets of shape "
                f"{tuple(y.shape)}: {first_line(error)}; fit loss and last layer to the targets"
            ) from error
        draws = any(not torch.equal(a, b) for a, b in zip(generators, _generators(torch, cuda), strict=True))
    if not isinstance(value, torch.Tensor) or value.ndim or not value.requires_grad:
        shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise ConfigError(
            f"loss must return one number that depends on the trainable parameters of {name}, got {shape}"
        )
    return Probed(sum(saved.values()), draws, tuple(outputs.shape), tuple(changed))


def _generators(torch: Any, cuda: list[Any]) -> list[Any]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in cuda)]


def first_line(error: BaseException) -> str:
    """An error's message in one line."""
    return next(iter(str(error).splitlines()), type(error).__name__)
