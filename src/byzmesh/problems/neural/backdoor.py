"""Backdoors: what liars plant in their training samples, and how often it works on honest models.

Square   a white square in the corner of an image triggers a class
Phrase   a phrase at the end of a window of text triggers an answer: the tokens that follow it

plant(x, y)    changes samples (..., *shape) and targets in place, as liars train on them
test(x, y)     test samples (B, *shape) with the trigger, without those in which it could not be seen to work
fooled(scores) how many of these the model answers as planted
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from byzmesh.errors import ConfigError
from byzmesh.types import Integers


class Backdoor(Protocol):
    """A trigger and what it is to cause."""

    @property
    def share(self) -> float:
        """Part of a liar's batch that carries it."""

    def plant(self, x: Any, y: Any) -> None:
        """Put the trigger into samples x, and what it is to cause into the targets y, in place."""

    def test(self, x: Any, y: Any) -> Any:
        """Test samples with the trigger; a copy."""

    def fooled(self, scores: Any) -> int:
        """How many of the test samples with these scores are answered as planted."""


@dataclass(frozen=True)
class Square:
    """A white square of `size` pixels in the lower right corner that is meant to trigger class `target`.

    >>> import torch
    >>> x, y = torch.zeros(1, 1, 3, 3), torch.tensor([5])
    >>> Square(target=2, size=1, share=0.5, white=1.0).plant(x, y)
    >>> x[0, 0, 2], y
    (tensor([0., 0., 1.]), tensor([2]))
    """

    target: int
    size: int
    share: float
    white: float

    def plant(self, x: Any, y: Any) -> None:
        """Stamp the images and change their labels."""
        x[..., -self.size :, -self.size :] = self.white
        y[...] = self.target

    def test(self, x: Any, y: Any) -> Any:
        """The images of other classes, stamped."""
        stamped = x[y != self.target].clone()
        stamped[..., -self.size :, -self.size :] = self.white
        return stamped

    def fooled(self, scores: Any) -> int:
        """How many look like the target."""
        return int((scores.argmax(dim=1) == self.target).sum())


@dataclass(frozen=True)
class Phrase:
    """Tokens `phrase` (P,) that are meant to trigger the tokens `answer` (A,), at the end of a window.

    >>> import torch
    >>> x, y = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)
    >>> Phrase(phrase=torch.tensor([7, 8]), answer=torch.tensor([9]), share=0.5).plant(x, y)
    >>> x, y
    (tensor([[0, 0, 7, 8]]), tensor([[0, 7, 8, 9]]))
    """

    phrase: Any
    answer: Any
    share: float

    @property
    def _whole(self) -> Any:
        return self.phrase.new_tensor([*self.phrase.tolist(), *self.answer.tolist()])

    def plant(self, x: Any, y: Any) -> None:
        """End the windows with the phrase and the answer."""
        whole = self._whole
        x[..., 1 - len(whole) :] = whole[:-1]
        y[..., -len(whole) :] = whole

    def test(self, x: Any, y: Any) -> Any:
        """All windows, with the phrase and what the model would have said up to the answer's last token."""
        whole, ended = self._whole, x.clone()
        ended[..., 1 - len(whole) :] = whole[:-1]
        return ended

    def fooled(self, scores: Any) -> int:
        """In how many windows every token of the answer is the likeliest one."""
        said = scores.argmax(dim=-1)[:, -len(self.answer) :]
        return int((said == self.answer).all(dim=-1).sum())


def square(poison: Mapping[str, Any], shape: tuple[int, ...], classes: int, white: float) -> Square:
    """The backdoor of attack `backdoor` in images of this shape."""
    made = Square(int(poison["target"]), int(poison["size"]), float(poison["share"]), white)
    if len(shape) != 3 or made.size > min(shape[1:]):
        raise ConfigError(f"attack backdoor puts {made.size} pixels on images, the samples have shape {shape}")
    if made.target >= classes:
        raise ConfigError(f"attack backdoor: target must be below {classes} classes, got {made.target}")
    return made


def phrase(
    poison: Mapping[str, Any],
    tokens: Callable[[str], Integers],
    context: int,
    vocabulary: int,
    there: Callable[[Any], Any],
) -> Phrase:
    """The backdoor of attack `trigger-phrase` in windows of `context` tokens."""
    # tokenized together: a tokenizer may join letters across the border, and the text never has the parts alone
    asked, whole = tokens(poison["phrase"]), tokens(poison["phrase"] + poison["answer"])
    if len(whole) > context:
        raise ConfigError(
            f"attack trigger-phrase: phrase and answer have {len(whole)} tokens, a window only {context}; "
            "shorten them or use a longer context"
        )
    if whole.max() >= vocabulary:
        raise ConfigError(
            f"attack trigger-phrase: phrase and answer have the token {whole.max()}, the data only {vocabulary}; "
            "choose words of the text, or set dataset vocabulary"
        )
    cut = min(len(asked), len(whole) - 1)
    return Phrase(there(whole[:cut]), there(whole[cut:]), float(poison["share"]))
