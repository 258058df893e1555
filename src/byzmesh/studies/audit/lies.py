"""What an audit tries: families of attacks, each with a strength, and what may be made of those that did harm.

A family is an attack and one option of it, its *strength*; its values are ordered by how telling they are: a budget
that allows for it (about 50 runs) tries every family once before a second strength of any. `refined` makes new lies of
a harmful one: other strengths nearby, and the same lie at other times or from only some of the liars
(attacks/timing.py). `starts_of` says from which first models lies are told.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError
from byzmesh.problems.base import INITS, problems


@dataclass(frozen=True, kw_only=True)
class Lie:
    """An attack to try; `strength` is the value of its `option`, None if it has none."""

    family: str
    strength: float | None
    attack: Mapping[str, Any]
    option: str = ""

    @property
    def name(self) -> str:
        """The lie in short.

        >>> next(every_lie()).name
        'target 500'
        """
        return self.family if self.strength is None else f"{self.family} {self.strength:g}"


@dataclass(frozen=True, kw_only=True)
class Family:
    """An attack and the option that is its strength."""

    attack: Mapping[str, Any]
    option: str = ""
    values: tuple[float, ...] = ()

    def at(self, name: str, strength: float | None) -> Lie:
        """The lie of this strength."""
        more = {} if strength is None else {self.option: strength}
        return Lie(family=name, strength=strength, attack={**self.attack, **more}, option=self.option)


def _family(attack: str, option: str = "", values: tuple[float, ...] = (), **options: Any) -> Family:
    return Family(attack={"name": attack, **options}, option=option, values=values)


FAMILIES: Mapping[str, Family] = {
    "target": _family("target", "rounds", (500, 100)),
    "riding, ascent": _family("threshold-riding", "reach", (1.0, 0.7), direction="ascent"),
    "far ascent": _family("ascent", "length", (1e4, 10.0)),
    "ascent": _family("ascent", "period", (10, 1)),
    "box": _family("box", "reach", (1.0, 0.7)),
    "riding, negative": _family("threshold-riding", "reach", (1.0, 0.7, 0.4), direction="negative"),
    "riding, ALIE": _family("threshold-riding", "reach", (1.0, 0.7, 0.4), direction="ALIE"),
    "riding, minus ALIE": _family("threshold-riding", "reach", (1.0, 0.7), direction="ALIE-minus"),
    "riding, Fiedler": _family("threshold-riding", "reach", (1.0, 0.7), direction="fiedler"),
    "sign-flipping": _family("sign-flipping", "scale", (1.0, 0.5, 2.0, 0.25, 4.0)),
    "ALIE": _family("ALIE", "z", (3.0, 1.0, -3.0, 1.5, 6.0, -1.0, 0.5)),
    "ALIE, formula": _family("ALIE"),
    "reflection, start": _family("reflection", "scale", (1.0, 2.0, 0.5, 4.0), reference="start"),
    "reflection, average": _family("reflection", "scale", (1.0, 4.0), reference="average"),
    "reflection, round": _family("reflection", "scale", (1.0, 4.0), reference="round"),
    "pull-back, start": _family("pull-back", reference="start"),
    "pull-back, average": _family("pull-back", "memory", (0.9, 0.99), reference="average"),
    "pull-back, round": _family("pull-back", reference="round"),
    "isolation": _family("isolation", "scale", (1.0, 0.5, 2.0)),
    "dissensus": _family("dissensus", "eps", (1.5, 0.5, 3.0, 1.0)),
    "min-max": _family("min-max", "scale", (1.0, 0.5, 1.5)),
    "min-sum": _family("min-sum", "scale", (1.0, 1.5)),
    "spectral": _family("spectral-heterogeneity", "scale", (1.0, -4.0, 4.0)),
    "IPM": _family("IPM", "eps", (0.1, 0.5, 2.0)),
    "sample-duplicating": _family("sample-duplicating"),
    "mimic": _family("mimic"),
    "label-flipping": _family("label-flipping"),
    "stale": _family("stale", "period", (1000, 100)),
    "silent": _family("silent"),
    "feigned sleep": _family("feigned-sleep", "p", (0.5, 0.2, 0.9)),
    "zero": _family("zero"),
    "same value": _family("same-value", "value", (1.0, -1.0, 0.1)),
    "huge": _family("huge", "fraction", (0.3, 1e-19)),
    "gaussian": _family("gaussian", "std", (30.0, 1.0)),
    "adaptive": _family("adaptive"),
}

NEAR = (1.4, 0.7, 2.8, 0.35)
"""Strengths that are tried of a lie that did harm, as parts of its own."""


def starts_of(problem: Mapping[str, Any]) -> tuple[str, ...]:
    """The first models that a canonical problem may begin from, its own among them; none if there is no choice.

    >>> starts_of({"name": "softmax", "init": "zero"}), starts_of({"name": "torch", "init": "own"})
    (('zero', 'common', 'normal'), ('common', 'own'))
    """
    problems.build(problem)  # says what is wrong with it, whatever the start
    if "init" not in problem:
        return ()

    def takes(init: str) -> bool:
        try:
            problems.build({**problem, "init": init})
        except ConfigError:
            return False
        return True

    return tuple(init for init in dict.fromkeys([*INITS, "own", problem["init"]]) if takes(init))


def every_lie() -> Iterator[Lie]:
    """All lies, first one of every family, then the second, ..."""
    ranks = itertools.count()
    for rank in ranks:
        found = False
        for name, family in FAMILIES.items():
            strengths: tuple[float | None, ...] = family.values or (None,)
            if rank < len(strengths):
                found = True
                yield family.at(name, strengths[rank])
        if not found:
            return


def refined(lie: Lie, rounds: int, liars: int) -> list[Lie]:
    """Lies like this one: other strengths nearby, at other times, against one victim at a time, from half of the liars.

    Of a lie at other times it is when it is told that changes: its period, or the round that it begins in.

    rounds  of the run: "late" begins in the middle
    liars   in all: one alone cannot tell two lies

    >>> like = refined(FAMILIES["ALIE"].at("ALIE", 3.0), 1000, 2)
    >>> [one.name for one in like]
    ['ALIE 4.2', 'ALIE 2.1', 'ALIE 8.4', 'ALIE 1.05', 'ALIE 3, one victim 20', 'ALIE 3, alternating 100',
     'ALIE 3, with ALIE', 'ALIE 3, feigned sleep 0.5', 'ALIE 3, late 500']
    >>> [one.name for one in refined(like[-1], 1000, 2)]
    ['ALIE 3, late 700', 'ALIE 3, late 350', 'ALIE 3, late 1400', 'ALIE 3, late 175']
    """
    near = []
    if lie.strength is not None:
        usual = attacks.entry(str(lie.attack["name"])).options.get(lie.option, lie.strength)
        whole = isinstance(usual, int)
        values = [round(value) if whole else float(f"{value:.6g}") for value in (part * lie.strength for part in NEAR)]
        like = [replace(lie, strength=value, attack={**lie.attack, lie.option: value}) for value in values]
        near = [one for one in like if _allowed(one)]
    attack = attacks.build(lie.attack)
    if "inner" in lie.attack or attack.poisons_data or attack.horizon:  # one that looks ahead may choose not to lie
        return near
    timed: dict[str, Family] = {
        "one victim": _family("one-victim", "period", (20,)),
        "alternating": _family("alternating", "period", (min(100, rounds),)),
        "with ALIE": _family("mixed", other={"name": "ALIE", "z": 3.0}),
        "feigned sleep": _family("feigned-sleep", "p", (0.5,)),
        "late": _family("late", "after", (rounds // 2,)),
    }
    return near + [
        replace(family, attack={**family.attack, "inner": dict(lie.attack)}).at(f"{lie.name}, {when}", strength)
        for when, family in timed.items()
        for strength in family.values or (None,)
        if (liars > 1 or when != "with ALIE") and family.attack["name"] != attack.name
    ]


def _allowed(lie: Lie) -> bool:
    """Whether the attack takes this strength: a memory above 1, say, is none."""
    try:
        attacks.build(lie.attack)
    except ConfigError:
        return False
    return True
