"""What an audit tries: families of attacks, each with a strength, and what may be made of those that did harm.

A family is an attack and one option of it, its *strength*; its values are ordered by how telling they are: a budget
that allows for it (about 50 runs) tries every family once before a second strength of any. `refined` makes new lies of
a harmful one: other strengths nearby, and the same lie at other times or from only some of the liars
(attacks/timing.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from byzmesh.attacks.base import attacks


@dataclass(frozen=True, kw_only=True)
class Lie:
    """An attack to try; `strength` is the value of its family's option, None if it has none."""

    family: str
    strength: float | None
    attack: Mapping[str, Any]

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
        return Lie(family=name, strength=strength, attack={**self.attack, **more})


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
    "pull-back, start": _family("pull-back", reference="start"),
    "pull-back, average": _family("pull-back", "memory", (0.9, 0.99), reference="average"),
    "isolation": _family("isolation", "scale", (1.0, 0.5, 2.0)),
    "dissensus": _family("dissensus", "eps", (1.5, 0.5, 3.0, 1.0)),
    "min-max": _family("min-max", "scale", (1.0, 0.5, 1.5)),
    "min-sum": _family("min-sum", "scale", (1.0, 1.5)),
    "spectral": _family("spectral-heterogeneity", "scale", (1.0, -4.0, 4.0)),
    "sample-duplicating": _family("sample-duplicating"),
    "mimic": _family("mimic"),
    "label-flipping": _family("label-flipping"),
    "stale": _family("stale", "period", (1000, 100)),
    "silent": _family("silent"),
    "zero": _family("zero"),
    "gaussian": _family("gaussian", "std", (30.0, 1.0)),
    "adaptive": _family("adaptive"),
}


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


def refined(lie: Lie, rounds: int) -> list[Lie]:
    """Lies like this one: other strengths nearby, at other times, against one victim at a time, from half of the liars.

    rounds  of the run: "late" begins in the middle

    >>> [one.name for one in refined(FAMILIES["ALIE"].at("ALIE", 3.0), 1000)][:3]
    ['ALIE 2.1', 'ALIE 4.2', 'ALIE 3, one victim']
    """
    family = FAMILIES.get(lie.family)
    near = []
    if family is not None and lie.strength is not None:
        whole = isinstance(attacks.entry(str(family.attack["name"])).options[family.option], int)
        values = [round(factor * lie.strength, None if whole else 6) for factor in (0.7, 1.4)]
        near = [family.at(lie.family, value) for value in values if not (family.option == "memory" and value > 1.0)]
    if family is None or attacks.build(lie.attack).poisons_data:
        return near
    inner, middle = dict(lie.attack), rounds // 2
    timed: dict[str, dict[str, Any]] = {
        f"{lie.name}, one victim": {"name": "one-victim", "inner": inner, "period": 20},
        f"{lie.name}, alternating": {"name": "alternating", "inner": inner, "period": 100},
        f"{lie.name}, with ALIE": {"name": "mixed", "inner": inner, "other": {"name": "ALIE", "z": 3.0}},
        f"{lie.name}, late": {"name": "late", "inner": inner, "after": middle},
    }
    return near + [Lie(family=family, strength=None, attack=attack) for family, attack in timed.items()]
