"""The only way to fill inboxes, whether the receivers are all workers of a simulation or one peer.

The rule decides what the receivers themselves send (`sends`): their half steps, or the models before them. A message
that is missing or not finite counts as silence, and its weight goes to the receiver itself. A message
beyond `FARTHEST` counts as one that ends there, in the same direction: no rule then sees a number whose square, or the
product of two such squares, is not finite, and what a rule decides from distances is what it applies to vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.round import FIRST, Round
from byzmesh.rules.base import Inbox, Rule
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.interop import from_host
from byzmesh.types import Booleans, Floats, Integers

FARTHEST = 1e30
"""Largest absolute value in a message; a larger message is scaled down to it."""


def make_inbox(
    rule: Rule,
    half: Any,
    *,
    weight: Floats,
    f: Integers,
    receiver: Integers,
    b: Floats | None = None,
    messages: Any = None,
    message_peak: Floats | None = None,
    combination: tuple[Integers, Floats] | None = None,
    index: Integers | None = None,
    expected: Booleans | None = None,
    present: Booleans | None = None,
    round: Round = FIRST,
    previous: Any = None,
    loss: Callable[[Any], Floats] | None = None,
    peak: Floats | None = None,
) -> Inbox:
    """The inboxes of R receivers with these half steps (R, D) in one round.

    weight       (R, K) mixing weights as if every message arrived, own first
    f, receiver  (R,) bound on the lying neighbours, and ids
    b            (R,) bound on their weight; None: f alone
    messages     (Q, D) what arrived, after `combination` of what the receivers send (see `Pool`)
    index        (R, K) row of the pool in each slot; None: every receiver has its own d messages, Q = R d
    expected     (R, K) the slots that are not padding; None: all
    present      (R, K) the slots whose message arrived; None: all that are expected
    previous     (R, D) models before the gradient step
    loss         see `Inbox`
    peak         (R,) the `peaks` of the half steps, if they are known; message_peak (Q,) those of the messages

    >>> from byzmesh.rules.nocomm import nocomm
    >>> ids = {"f": np.array([1]), "receiver": np.array([0]), "weight": np.full((1, 4), 0.25)}
    >>> came, messages = np.array([[True, True, True, False]]), np.array([[1.0], [np.nan], [0.0]])
    >>> inbox = make_inbox(nocomm(), np.zeros((1, 1)), messages=messages, present=came, **ids)
    >>> inbox.present, inbox.weight
    (array([[ True,  True, False, False]]), array([[0.75, 0.25, 0.  , 0.  ]]))
    """
    sent = sent_by(rule, half, previous)
    pool = Pool(sent, messages, combination, own_peak=peak if sent is half else None, message_peak=message_peak)
    if index is None:
        index = own_slots(*weight.shape)
    if expected is None:
        expected = np.ones(index.shape, bool)
    if present is None:
        present = expected
    if not pool.top <= FARTHEST:
        present = present & pool.usable[index]
        pool, index = within_reach(pool, index)
    if present is not expected and not np.array_equal(present, expected):
        weight = silence(weight, present)
    return Inbox(
        pool=pool,
        index=index,
        weight=weight,
        present=present,
        f=f,
        receiver=receiver,
        b=b,
        round=round,
        previous=previous,
        half=half if rule.sends == "start" else None,
        loss=loss,
    )


def candidate_losses(inbox: Inbox, rule: str) -> Floats:
    """(R, K) loss of every slot's vector on the receiver's own batch; `rule` is named if there is none to ask for."""
    if inbox.loss is None:
        raise ConfigError(f"{rule} needs the loss of candidate models: pass loss=")
    candidates = inbox.pool.rows()[inbox.index.ravel()].reshape(*inbox.index.shape, -1)
    return inbox.loss(candidates)


def within_reach(pool: Pool, index: Integers) -> tuple[Pool, Integers]:
    """The pool and the rows of its slots, with rows beyond `FARTHEST` scaled down by a power of two.

    A receiver's own model is unchanged; if it is that large, its neighbours receive a smaller copy.

    >>> pool, index = within_reach(Pool(np.zeros((1, 2)), np.array([[1e300, -3e300]])), np.array([[0, 1]]))
    >>> bool(abs(pool.messages).max() <= FARTHEST), (pool.messages[0, 1] / pool.messages[0, 0]).round(12)
    (True, np.float64(-3.0))
    """
    own = len(pool.own)
    far = np.isfinite(pool.peak) & (pool.peak > FARTHEST)
    if not far.any():
        return pool, index
    factor = np.exp2(np.where(far, np.floor(np.log2(FARTHEST / np.where(far, pool.peak, FARTHEST))), 0.0))
    if far[:own].any():
        index = index.copy()
        index[:, 1:] += own
        return Pool(pool.own, pool.rows() * from_host(factor[:, None], pool.own)), index
    messages, combination, dense = pool.messages, pool.combination, own + pool.combined
    if combination is not None:
        combination = combination[0], combination[1] * factor[own:dense, None]
    if messages is not None:
        messages = messages * from_host(factor[dense:, None], pool.own)
    return Pool(pool.own, messages, combination), index


def sent_by(rule: Rule, half: Any, previous: Any) -> Any:
    """(R, D) what workers send under a rule: their half steps, or the models before them."""
    if previous is None and (rule.needs_previous or rule.sends == "start"):
        raise ConfigError(f"rule {rule.name} needs the models before the gradient step: pass previous=")
    return previous if rule.sends == "start" else half


def own_slots(receivers: int, slots: int) -> Integers:
    """(R, K) rows of a pool in which every receiver has its own K - 1 messages, receiver by receiver.

    >>> own_slots(2, 3)
    array([[0, 2, 3],
           [1, 4, 5]])
    """
    index = np.empty((receivers, slots), np.int64)
    index[:, 0] = np.arange(receivers)
    index[:, 1:] = receivers + np.arange(receivers * (slots - 1)).reshape(receivers, slots - 1)
    return index


def silence(weight: Floats, present: Booleans) -> Floats:
    """(R, K) the weights with those of absent slots given to the receiver itself.

    >>> silence(np.array([[0.4, 0.3, 0.3]]), np.array([[True, False, True]]))
    array([[0.7, 0. , 0.3]])
    """
    kept = np.where(present, weight, 0.0)
    kept[:, 0] += (weight - kept).sum(axis=1)
    return kept
