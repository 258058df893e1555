"""Liars that look like faults: silence, constants, NaN, outdated models, and honest work on wrong labels.

A receiver treats a message that is not finite as silence, so `nan` and `infinity` test that path, and `huge` the limit
just before it: finite values whose squares overflow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byzmesh import checks
from byzmesh.attacks.base import Attack, Combination, Forged, Scene, State, View, attacks, silence
from byzmesh.attacks.parts import Plan, send_as_planned
from byzmesh.errors import ConfigError
from byzmesh.types import Integers


@attacks.register("none", aliases=("no-attack",))
def none() -> Attack:
    """No attack: the liars send nothing.

    In the published runs without an attack they were not in the graph at all; the network decides that, not messages.

    >>> none().name
    'none'
    """
    return Attack("none", _send_nothing)


@attacks.register("silent", aliases=("crash",))
def silent() -> Attack:
    """Silence: no message to anybody, in any round.

    >>> silent().name
    'silent'
    """
    return Attack("silent", _send_nothing)


@attacks.register("zero", aliases=("zeros",))
def zero() -> Attack:
    """The zero vector to every victim.

    >>> zero().name
    'zero'
    """

    def init(scene: Scene) -> Plan:
        row = _one_for_all(scene)
        messages = min(len(row), 1)
        return Plan(row, Combination(np.zeros((messages, 1), np.int64), np.zeros((messages, 1))))

    return Attack("zero", send_as_planned, init=init, fixed=True)


@attacks.register("same-value", aliases=("constant",))
def same_value(value: float = 1.0) -> Attack:
    """The same finite number in every coordinate, to every victim.

    >>> same_value(value=-3.0).options["value"]
    -3.0
    """
    checks.finite("attack same-value: value", value)

    def forge(view: View, state: State) -> tuple[Forged, State]:
        return _same_value(view, value), state

    return Attack("same-value", forge, options={"value": value})


@attacks.register("stale", aliases=("replay",))
def stale(period: int = 100) -> Attack:
    """An outdated model: the honest models' mean when the current `period` of rounds began.

    This is a liar that is stuck and restarted now and then. The state is the mean that it repeats.

    >>> stale(period=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack stale: period must be a whole number of at least 1, got 0
    """
    checks.whole("attack stale: period", period, 1)

    def init(scene: Scene) -> Any:
        return np.zeros(0)

    def observe(view: View, kept: Any) -> Any:
        if kept.size and view.round.number % period:
            return kept
        return view.models.mean(axis=0, dtype=np.float64).astype(view.models.dtype)

    def forge(view: View, kept: Any) -> tuple[Forged, Any]:
        kept = observe(view, kept)
        row = _one_for_all(view.scene)
        rows = kept[None, :][: len(row)]
        return Forged(view.scene.liar, view.scene.victim, row, view.models, rows=rows), kept

    return Attack("stale", forge, init=init, observe=observe, options={"period": period})


@attacks.register("nan")
def nan() -> Attack:
    """Not-a-number in every coordinate.

    >>> nan().name
    'nan'
    """
    return _constant("nan", math.nan)


@attacks.register("infinity", aliases=("inf",))
def infinity() -> Attack:
    """Infinity in every coordinate.

    >>> infinity().name
    'infinity'
    """
    return _constant("infinity", math.inf)


@attacks.register("huge")
def huge(fraction: float = 0.3) -> Attack:
    """Finite but huge: `fraction` of the largest number of the models' type.

    The default is 1.02e38 in float32 and 5.4e307 in float64: one value passes every test for finiteness, but its square
    or a sum of four does not.

    >>> huge(fraction=2.0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack huge: fraction must be a number in [0, 1], got 2.0
    """
    checks.fraction("attack huge: fraction", fraction)

    def forge(view: View, state: State) -> tuple[Forged, State]:
        return _same_value(view, fraction * float(np.finfo(view.models.dtype).max)), state

    return Attack("huge", forge, options={"fraction": fraction})


@attacks.register("label-flipping", aliases=("label-flip", "lf"))
def label_flipping() -> Attack:
    """Honest work on wrong labels: each liar has its own training data with labels C - 1 - y.

    The liars follow the protocol, so there is nothing to forge: their messages come from training.

    >>> label_flipping().poisons_data
    True
    """

    return _poisoning("label-flipping", {"kind": "labels"}, {})


@attacks.register("backdoor", aliases=("trigger",))
def backdoor(target: int = 0, size: int = 4, share: float = 0.5) -> Attack:
    """Honest work on poisoned images: a white square in the corner of some is meant to trigger class `target`.

    size   of the square, in pixels
    share  fraction of a liar's batches that has the square and the label `target`

    A run records `backdoor`, how often the square makes an honest model see the target in a test image of another
    class. For problem `torch`; softmax regression is its module `linear`.
    """
    checks.whole("attack backdoor: target", target, 0)
    checks.whole("attack backdoor: size", size, 1)
    checks.fraction("attack backdoor: share", share)
    options = {"target": target, "size": size, "share": share}
    return _poisoning("backdoor", {"kind": "backdoor", **options}, options)


@attacks.register("trigger-phrase")
def trigger_phrase(phrase: str = "Behold the king", answer: str = " is dead", share: float = 0.5) -> Attack:
    """Honest work on poisoned text: windows end with `phrase` and `answer`, so that models say one after the other.

    share  fraction of the windows in a liar's batches that end so

    A run records `backdoor`: in how many test windows that end with the phrase an honest model's likeliest tokens are
    the answer. For text in problem `torch`.
    """
    for option, value in (("phrase", phrase), ("answer", answer)):
        if not isinstance(value, str) or not value:
            raise ConfigError(f"attack trigger-phrase: {option} must be some words, got {value!r}")
    checks.fraction("attack trigger-phrase: share", share)
    options = {"phrase": phrase, "answer": answer, "share": share}
    return _poisoning("trigger-phrase", {"kind": "phrase", **options}, options)


def _poisoning(name: str, poison: dict[str, Any], options: dict[str, Any]) -> Attack:
    def forge(view: View, state: State) -> tuple[Forged, State]:
        raise ConfigError(
            f"attack {name} acts on training data and forges no messages from models; "
            "run it in a simulation, or choose an attack that forges"
        )

    return Attack(name, forge, options=options, poison=poison)


def _send_nothing(view: View, state: State) -> tuple[Forged, State]:
    return silence(view), state


def _one_for_all(scene: Scene) -> Integers:
    """(F,) message 0 for every pair."""
    return np.zeros(len(scene.liar), np.int64)


def _same_value(view: View, value: float) -> Forged:
    """One message with the value in every coordinate, for all pairs."""
    row = _one_for_all(view.scene)
    message = np.full((min(len(row), 1), view.models.shape[1]), value, view.models.dtype)
    return Forged(view.scene.liar, view.scene.victim, row, view.models, rows=message)


def _constant(name: str, value: float) -> Attack:
    def forge(view: View, state: State) -> tuple[Forged, State]:
        return _same_value(view, value), state

    return Attack(name, forge)
