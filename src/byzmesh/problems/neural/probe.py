"""What a module does with the data, found by running it once: its outputs, its memory, and what cannot be trained here.

running statistics   (BatchNorm, InstanceNorm with track_running_stats, any buffer that a forward pass changes) are
                     an error: they are neither trained nor sent, so no two workers would evaluate the same model
randomness           (dropout) is found by two passes that differ; such modules go the way `loop`, seeded per worker
outputs              must be (B, classes) for class labels
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byzmesh.errors import ConfigError


@dataclass(frozen=True)
class Probed:
    """What was found.

    saved    bytes kept for the backward pass of one batch
    draws    whether the module uses random numbers while training
    outputs  shape of the outputs of one batch
    """

    saved: int
    draws: bool
    outputs: tuple[int, ...]


def probe(module: Any, x: Any, y: Any, loss: Any, classes: int) -> Probed:
    """Run a module in training mode on one batch x (B, ...), y (B,); parameters and buffers stay as they are."""
    import torch

    name = type(module).__name__
    buffers = {key: value.clone() for key, value in module.named_buffers()}
    saved: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        saved[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    cuda = [x.device] if x.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(0)
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                first = module(x)
        except (RuntimeError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(
                f"module {name} does not take samples of shape {tuple(x.shape[1:])}: {reason}; fit its first layer"
            ) from error
        changed = [key for key, value in module.named_buffers() if not torch.equal(value, buffers[key])]
        if changed:
            with torch.no_grad():
                for key, value in module.named_buffers():
                    value.copy_(buffers[key])
            raise ConfigError(
                f"module {name} changes its buffer {changed[0]!r} while training (running statistics): these are "
                "neither trained nor sent; use GroupNorm, or BatchNorm with track_running_stats=False"
            )
        torch.manual_seed(1)
        second = module(x)
    if not isinstance(first, torch.Tensor):
        raise ConfigError(f"module {name} returns a {type(first).__name__}; it must return one tensor")
    if classes and tuple(first.shape) != (len(x), classes):
        raise ConfigError(
            f"module {name} gives outputs of shape {tuple(first.shape)} for {len(x)} samples, the data have {classes} "
            f"classes; make its last layer {classes} wide"
        )
    value = loss(first, y)
    if value.ndim or not value.requires_grad:
        raise ConfigError(
            f"loss must return one number that depends on the trainable parameters of {name}, got shape "
            f"{tuple(value.shape)}"
        )
    return Probed(sum(saved.values()), not torch.equal(first, second), tuple(first.shape))
