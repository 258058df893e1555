"""One receiver, one call: `aggregate` for your own training loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.checks import fraction, whole
from byzmesh.errors import ConfigError, InfeasibleBound, WeakBound
from byzmesh.heaviest import most_within
from byzmesh.round import FIRST, Round
from byzmesh.rules.alone import aggregate_at_once, equal_weights, named_rule, prepared_alone
from byzmesh.rules.base import Rule, normalised, rules
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.inbox import make_inbox
from byzmesh.rules.interop import Bridge
from byzmesh.rules.streamed import apply_streamed, sliceable
from byzmesh.types import Booleans, Floats, Integers


class BadMessage(UserWarning):
    """A message was not finite or of the wrong shape and counted as silence.

    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     aggregate("mean", np.zeros(1), [[1.0], [np.nan]])
    ...     print(told[0].message)
    array([0.33333333])
    messages [1] are missing, not finite or of the wrong shape: silence
    """


def rule(spec: str | Rule | Mapping[str, Any] | Callable[..., Any], /, **options: Any) -> Rule:
    """The rule of a name or a mapping with `name`, with these options.

    >>> rule("cc", tau=0.1).options
    {'tau': 0.1, 'centre': 'own', 'iterations': 1}
    """
    return rules.build(spec, **options)


make_rule = rule  # `rule` is also the name of arguments below


def check_feasible(
    rule: Rule, f: Integers, neighbours: Integers, workers: Integers, *, all_arrive: bool = True
) -> None:
    """Raise `InfeasibleBound` for the first worker with too large a bound for the rule; warn if it does not resist it.

    all_arrive  whether a round waits for every honest message, as a simulation does. Peers continue after d - f: f
                honest messages may be late while all f lies are there, so that f must hold for d - f messages.

    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     check_feasible(rules.build("krum"), np.array([2]), np.array([6]), np.array([4]), all_arrive=False)
    ...     print(told[0].message)
    rule Krum with f = 2 at worker 4: it resists 1 of the d - f = 4 messages that a round surely has; use f <= 1
    """
    if rule.feasible is None:
        return
    counts, place = np.unique(neighbours, return_inverse=True)
    largest = np.array([rule.largest_f(int(count)) for count in counts], np.int64)[place]
    for bad in np.flatnonzero(f > largest)[:1]:
        raise InfeasibleBound(
            rule=rule.name,
            worker=int(workers[bad]),
            f=int(f[bad]),
            largest=int(largest[bad]),
            neighbours=int(neighbours[bad]),
        )
    sure = neighbours if all_arrive else neighbours - f
    counts, place = np.unique(sure, return_inverse=True)
    resisted = np.array([rule.feasible.resisted(int(count)) for count in counts], np.int64)[place]
    for weak in np.flatnonzero((f > resisted) & (f > 0))[:1]:
        way_out = _resisted(rule.feasible, int(neighbours[weak]), all_arrive)
        of_which = "messages of a round" if all_arrive else "messages that a round surely has"
        count = f"{sure[weak]}" if all_arrive else f"d - f = {sure[weak]}"
        warnings.warn(
            WeakBound(
                f"rule {rule.name} with f = {f[weak]} at worker {workers[weak]}: it resists {max(0, resisted[weak])} "
                f"of the {count} {of_which}; use f <= {way_out}"
            ),
            stacklevel=3,
        )


def _resisted(feasible: Feasible, neighbours: int, all_arrive: bool) -> int:
    """The largest f that d neighbours allow and the rule resists."""
    return max(
        f
        for f in range(max(0, feasible.largest(neighbours)) + 1)
        if f <= max(0, feasible.resisted(neighbours if all_arrive else neighbours - f))
    )


def aggregate(
    rule: str | Rule | Mapping[str, Any] | Callable[..., Any],
    own: Any,
    received: Any,
    /,
    weights: npt.ArrayLike | None = None,
    f: int | None = None,
    *,
    b: float | None = None,
    previous: Any = None,
    centre: Any = None,
    round: Round = FIRST,
    loss: Callable[[Any], float] | None = None,
    in_blocks: int | None = None,
    out: Any = None,
    **options: Any,
) -> Any:
    """Combine one worker's own vector with what it received.

    own        (D,) NumPy or torch, on any device; the result has the same type, dtype and device
    received   (d, D), or a list of d vectors (None for a missing message), in the order of sender ids
    weights    (d + 1,) mixing weights, own first (default: equal)
    f          bound on how many of the received vectors are lies (default 1)
    b          instead of f: bound on what they weigh together
    previous   (D,) its own model before the gradient step (SimRew, ByRDiE, DRSA with at="start")
    centre     (D,) centred clipping's memory, its previous output (a string is CC's option of that name)
    round      its number, the step size (DRSA), the seed (bucketing)
    loss       vector -> loss on its own batch (UBAR, Zeno)
    in_blocks  for vectors that are too long to be copied: so many coordinates at a time (rules/streamed.py)
    out        (D,) with `in_blocks`: where to write the result, perhaps `own`

    A vector that is not finite or of the wrong shape counts as silence, with a `BadMessage` warning: its weight goes to
    its own vector.

    >>> aggregate("ios", np.zeros(2), [[1.0, 0.0], [0.0, 1.0], [90.0, 90.0]], f=1)
    array([0.33333333, 0.33333333])
    """
    if isinstance(centre, str):
        options, centre = {**options, "centre": centre}, None
    elif centre is not None and not isinstance(rule, Rule):
        options = {"centre": "memory", **options}
    chosen = make_rule(rule, **options) if options or not isinstance(rule, str) else named_rule(rule)
    if in_blocks is not None:
        bounds = {"weights": weights, "f": f, "b": b, "round": round, "block": whole("in_blocks", in_blocks, 1)}
        return _in_blocks(own, received, out, chosen, centre, **bounds)
    if out is not None:
        raise ConfigError("out needs in_blocks, e.g. in_blocks=1 << 17")
    if weights is None and b is None and previous is None and centre is None and loss is None:
        found = aggregate_at_once(chosen, own, received, f, round)
        if found is not None:
            return found
    bridge = Bridge(own, "own")
    mine = bridge.vector(own)[None, :]
    messages, arrived = _messages(bridge, received, mine.shape[1])
    neighbours = len(arrived)
    weight = _weights(weights, neighbours)
    bound, room = _bound(chosen, f, b, weight)
    usual = arrived.all() and previous is None and centre is None and loss is None and room is None
    if usual and isinstance(mine, np.ndarray):
        prepared = prepared_alone(chosen, weight, int(bound[0]), mine)
        found = None if prepared is None else prepared.apply(mine, peaks(mine), round, None, messages)
        if found is not None:
            return bridge.back(found[0][0])
    check_feasible(chosen, bound, np.array([neighbours]), np.zeros(1, np.int64))
    start = None if previous is None else bridge.vector(previous)[None, :]
    inbox = make_inbox(
        chosen,
        mine,
        weight=weight,
        f=bound,
        b=room,
        receiver=np.zeros(1, np.int64),
        messages=messages,
        present=np.concatenate([[True], arrived])[None, :],
        round=round,
        previous=start,
        loss=None if loss is None else _losses(loss, bridge),
    )
    if not inbox.present[0, 0]:
        raise ConfigError(
            "own must be finite, got a vector with NaN or infinity; restart this worker from a checkpoint"
        )
    bad = np.flatnonzero(~inbox.present[0, 1:])
    if bad.size:
        warnings.warn(
            BadMessage(f"messages {bad.tolist()} are missing, not finite or of the wrong shape: silence"), stacklevel=2
        )
    state = chosen.init(mine) if centre is None else bridge.vector(centre)[None, :]
    outcome, _ = chosen.apply(inbox, state)
    return bridge.back(outcome.models[0])


def _in_blocks(own: Any, received: Sequence[Any], out: Any, rule: Rule, centre: Any, **bounds: Any) -> Any:
    """`aggregate` a block of coordinates at a time."""
    bridge = Bridge(own, "own")
    if not bridge.here:
        raise ConfigError(f"in_blocks needs vectors in this machine's memory, own is on {bridge.device}; leave it out")
    if out is None:
        out = own.clone() if bridge.torch is not None else np.empty(len(own), bridge.dtype)
    if np.shape(out) != np.shape(own):
        raise ConfigError(f"out must be like own, a vector of {len(own)} numbers, got shape {tuple(np.shape(out))}")
    fits = [vector is not None and tuple(np.shape(vector)) == (len(own),) for vector in received]
    messages = [sliceable(vector) if usable else None for vector, usable in zip(received, fits, strict=True)]
    memory = None if centre is None else sliceable(centre)
    aggregate_blocks(rule, sliceable(own), messages, sliceable(out), centre=memory, dtype=bridge.work, **bounds)
    return out


def aggregate_blocks(
    rule: Rule,
    own: Any,
    messages: Sequence[Any],
    out: Any,
    *,
    weights: npt.ArrayLike | None,
    f: int | None,
    b: float | None = None,
    centre: Any = None,
    dtype: Any,
    round: Round = FIRST,
    block: int,
) -> list[int]:
    """`aggregate` for vectors of D numbers that can be sliced, into `out`; the positions of the silent messages."""
    weight = _weights(weights, len(messages))
    bound, room = _bound(rule, f, b, weight)
    check_feasible(rule, bound, np.array([len(messages)]), np.zeros(1, np.int64))
    said = apply_streamed(
        rule,
        [own],
        messages,
        [out],
        weight=weight,
        f=bound,
        b=room,
        receiver=np.zeros(1, np.int64),
        dtype=dtype,
        round=round,
        state=None if centre is None else [centre],
        block=block,
    )
    bad: list[int] = np.flatnonzero(~said.present[0, 1:]).tolist()
    if bad:
        warnings.warn(
            BadMessage(f"messages {bad} are missing, not finite or of the wrong shape: silence"), stacklevel=4
        )
    return bad


def _messages(bridge: Bridge, received: Any, dimension: int) -> tuple[Any, Booleans]:
    """(d, D) messages, zero where unusable, and which arrived in the right shape."""
    shape = getattr(received, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == dimension:
        return bridge.rows(received), np.ones(shape[0], bool)
    if shape is not None and (len(shape) != 2 or shape[0] > 0):
        raise ConfigError(f"received must be of shape (d, {dimension}) like own, got {tuple(shape)}")
    if not isinstance(received, Sequence) and shape is None:
        raise ConfigError(
            f"received must be an array (d, {dimension}) or a list of vectors, got {type(received).__name__}"
        )
    return bridge.stack(list(received), dimension)


def _weights(weights: npt.ArrayLike | None, neighbours: int) -> Floats:
    if weights is None:
        return equal_weights(neighbours)
    weight = np.asarray(weights, np.float64)
    if weight.shape != (neighbours + 1,):
        raise ConfigError(f"weights must have d + 1 = {neighbours + 1} entries, own first, got shape {weight.shape}")
    if not np.all(np.isfinite(weight)) or weight.min() < 0.0 or abs(weight.sum() - 1.0) > 1e-6:
        raise ConfigError(f"weights must be at least 0 and sum to 1, got a sum of {weight.sum():.6g}; divide by it")
    return normalised(weight[None, :])


def _bound(rule: Rule, f: int | None, b: float | None, weight: Floats) -> tuple[Integers, Floats | None]:
    """((1,) f, (1,) b): with b, as many of the lightest vectors as it allows, the rule too, and one is left."""
    if b is None:
        return np.array([whole("f", 1 if f is None else f, 0)], np.int64), None
    if f is not None:
        raise ConfigError("give f, how many received vectors are lies, or b, how much they weigh: one of the two")
    room, neighbours = np.array([fraction("b", b, one=False)]), weight.shape[1] - 1
    most = most_within(weight[:, 1:], np.array([neighbours]), room)
    allowed = max(0, min(neighbours - 1, rule.largest_f(neighbours)))
    weak = ""
    if most[0] > allowed:
        weak = f"{most[0]} of {neighbours} received vectors lie, rule {rule.name} resists no more than {allowed}; take "
        weak += "another rule, or give a smaller b"
    elif b >= 0.5:
        weak = "lies weigh half or more, which no rule resists; give a smaller b"
    if rule.uses_f and weak:
        warnings.warn(WeakBound(f"b = {b:g} lets {weak}"), stacklevel=3)
    return np.minimum(most, allowed), room


def _losses(loss: Callable[[Any], float], bridge: Bridge) -> Callable[[Any], Floats]:
    def evaluate(candidates: Any) -> Floats:
        return np.array([[float(loss(bridge.back(vector))) for vector in line] for line in candidates])

    return evaluate
