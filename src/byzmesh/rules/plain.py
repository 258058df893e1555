"""A rule from a plain function of one inbox: simple but slow, called receiver by receiver.

    own (D,), received (d, D), weights (d + 1,), f   ->   (D,) the new model

`received` has the finite messages that arrived, by sender id; the weight of silent neighbours is in `weights[0]`, the
receiver's own; f is at most d. If the result is not finite, the receiver keeps its own model for the round. Such a rule
has no coefficients, so nobody can say whom it trusted; a `gram_rule` has them, and is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byzmesh.entries import Plain
from byzmesh.errors import ConfigError
from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.gram.rule import keep_own
from byzmesh.rules.interop import from_host, to_host
from byzmesh.types import Array, Booleans

ARGUMENTS = ("own", "received", "weights", "f")
PlainRule = Callable[..., Any]


def plain_rule(function: PlainRule, name: str, options: Mapping[str, Any]) -> Rule:
    """The rule of a plain function; `options` are its further arguments.

    >>> import byzmesh as bm
    >>> def middle(own, received, weights, f):
    ...     return np.median(np.vstack([own, received]), axis=0)
    >>> bm.aggregate(middle, np.zeros(2), [[1.0, 1.0], [9.0, 2.0]])
    array([1., 1.])
    """

    def apply_receiver_by_receiver(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        rows = to_host(inbox.pool.rows())
        models = np.empty((len(inbox.index), rows.shape[1]), rows.dtype)
        for receiver, (index, present) in enumerate(zip(inbox.index, inbox.present, strict=True)):
            vectors = rows[index[present]]
            weights = inbox.weight[receiver][present]
            vectors.flags.writeable = weights.flags.writeable = False
            f = min(int(inbox.f[receiver]), len(vectors) - 1)
            models[receiver] = checked(function(vectors[0], vectors[1:], weights, f, **options), vectors[0], name)
        kept: Booleans = np.logical_not(np.isfinite(models).all(axis=1))
        return Outcome(models=keep_own(inbox, from_host(models, inbox.pool.own), kept), kept=kept), state

    return Rule(
        name,
        apply_receiver_by_receiver,
        options=options,
        uses_weights=True,
        translates=False,
        idempotent=False,
        affine=False,
    )


def checked(result: Any, own: Array, name: str) -> Array:
    """A plain rule's result as a vector like `own`; `ConfigError` that names the rule and both shapes otherwise."""
    try:
        vector: Array = np.asarray(result, own.dtype)
    except (TypeError, ValueError):
        raise ConfigError(
            f"rule {name} must return a vector of shape {own.shape}, got {type(result).__name__}"
        ) from None
    if vector.shape != own.shape:
        raise ConfigError(f"rule {name} must return a vector of shape {own.shape}, got shape {vector.shape}")
    return vector


rules.plain = Plain("rule", ARGUMENTS, plain_rule)
