"""Augmentation: random changes of a batch's images, a function of (seed, worker, round) like every other draw.

An augmentation says how many uniform numbers it needs per sample and turns images and numbers into images. In a config:

    augment: [flip, {name: shift, pixels: 2}]

    images  (R, B, C, H, W)     draws (R, B, count) in [0, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.problems.neural.modules import label
from byzmesh.registry import Registry


@dataclass(frozen=True)
class Augmentation:
    """`apply(images, draws)` returns images of the same shape; `count` is the number of draws per sample."""

    count: int
    apply: Callable[[Any, Any], Any]


augmentations: Registry[Augmentation] = Registry("augmentation", "byzmesh.augmentations", (), Augmentation)


def canonical_augmentations(given: Any) -> list[dict[str, Any]]:
    """The augmentations of a config with names in full and every option written out.

    >>> canonical_augmentations(["flip", "crop"])
    [{'name': 'flip'}, {'name': 'shift', 'pixels': 2}]
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"augment must be a list such as [flip], got {given!r}")
    return [
        {"name": label(item.apply)} if isinstance(item, Augmentation) else augmentations.canonical(item)
        for item in given
    ]


@augmentations.register("flip")
def flip() -> Augmentation:
    """Mirror left and right, every second image."""

    def apply(images: Any, draws: Any) -> Any:
        return images.flip(-1).where((draws[..., 0] < 0.5)[..., None, None, None], images)

    return Augmentation(1, apply)


@augmentations.register("shift", aliases=("crop",))
def shift(pixels: int = 2) -> Augmentation:
    """Move by up to `pixels` in both directions; the gap is filled with the image's smallest value."""
    whole("augmentation shift: pixels", pixels, 1)

    def apply(images: Any, draws: Any) -> Any:
        import torch

        height, width = images.shape[-2:]
        offset = (draws * (2 * pixels + 1)).long() - pixels
        moved, inside = images, torch.ones((), dtype=torch.bool, device=images.device)
        for axis, size in ((-2, height), (-1, width)):
            source = torch.arange(size, device=images.device) - offset[..., 2 + axis, None]
            shape = (*source.shape[:2], 1, size, 1) if axis == -2 else (*source.shape[:2], 1, 1, size)
            index = source.clamp(0, size - 1).view(shape).expand_as(images)
            moved = moved.gather(axis, index)
            inside = inside & ((source >= 0) & (source < size)).view(shape)
        return moved.where(inside, images.amin(dim=(-3, -2, -1), keepdim=True))

    return Augmentation(2, apply)
