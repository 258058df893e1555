"""Aggregation over blocks of coordinates: never more in memory than the models themselves and one block of each.

A rule that is a choice of weights needs two passes over the vectors: inner products, summed over the blocks, and the
mixture with the coefficients that they lead to. So does a rule of ranks: it must know first which messages are usable.
A vector is anything of D numbers that can be sliced: an array, a memory map, the parameters of a module one after the
other (`bm.torch.aggregate`). The results may be written to where the receivers' own vectors are.

    own       R vectors (D,)        out       R vectors (D,), perhaps the same
    messages  Q vectors (D,)        memory    (R + Q + A) block numbers, and (R block) for the results; A anchors

Equal to `Rule.apply`: bit for bit where coefficients do not depend on the last bit of an inner product (rules of ranks,
and those that select, as IOS) and all messages are usable, else up to rounding.

A message that has NaN or infinity anywhere is silence everywhere, and one beyond `FARTHEST` is scaled down as a whole:
blocks are read before anything is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.round import FIRST, Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Block, Choosing, Ranking, Rule, settle
from byzmesh.rules.gram.basis import FAR, HUGE
from byzmesh.rules.gram.pool import Pool, peaks
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.rules.gram.rule import checked
from byzmesh.rules.gram.slots import anchored_slots, gather_blocks, scatter
from byzmesh.rules.inbox import FARTHEST, own_slots, silence
from byzmesh.rules.ranks import rank_mean
from byzmesh.types import Array, Booleans, Floats, Integers

BLOCK = 1 << 17
"""Coordinates of a block."""
Vectors = Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """What a streamed round leaves besides the new models.

    present       (R, K) whether a slot had a usable message
    coefficients  (R, K) how much each slot counted; None for rules of ranks
    kept          (R,) whether the receiver kept its own model
    """

    present: Booleans
    coefficients: Floats | None
    kept: Booleans


class _Tensor:
    """A tensor (D,) in this machine's memory, whose slices are NumPy arrays that share it where NumPy has the type."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor.detach()

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, part: slice) -> Array:
        piece = self.tensor[part]
        found: Array = (piece.float() if piece.element_size() < 4 else piece).cpu().numpy()
        return found

    def __setitem__(self, part: slice, values: Array) -> None:
        self.tensor[part] = self.tensor.new_tensor(values)


def sliceable(vector: Any) -> Any:
    """A vector (D,) as something whose slices NumPy takes: a tensor's by a view, anything else as it is or as an array.

    >>> sliceable([1.0, 2.0])[0:1]
    array([1.])
    """
    if hasattr(vector, "detach"):
        return _Tensor(vector)
    return vector if hasattr(vector, "shape") else np.asarray(vector)


def streams(rule: Rule) -> bool:
    """Whether a rule can be applied over blocks: it declares what its `apply` consists of, and that is all it does.

    >>> import byzmesh as bm
    >>> [name for name in ("ios", "trimean", "geomed", "cc", "ubar") if streams(bm.rule(name))]
    ['ios', 'trimean', 'geomed', 'cc']
    """
    parts = rule.consists_of
    known = parts is not None and parts.apply is rule.apply
    return known and rule.sends == "half" and not (rule.needs_previous or rule.needs_loss)


def apply_streamed(
    rule: Rule,
    own: Vectors,
    messages: Vectors,
    out: Vectors,
    *,
    weight: Floats,
    f: Integers,
    receiver: Integers,
    dtype: Any,
    b: Floats | None = None,
    index: Integers | None = None,
    present: Booleans | None = None,
    round: Round = FIRST,
    state: Vectors | None = None,
    block: int | None = None,
) -> Streamed:
    """Write what a rule makes of R receivers' inboxes to `out`, a block of coordinates at a time.

    messages  None for one that is missing
    weight, f, receiver, b, index, present, round  as in `make_inbox`
    dtype     in which to compute, float32 or float64
    state     of a rule that remembers its last output: R vectors; None: the first round
    block     coordinates at a time; None: `BLOCK`

    >>> import byzmesh as bm
    >>> own, lies = np.zeros(5), [np.ones(5), np.ones(5), np.full(5, 90.0)]
    >>> told = {"weight": np.full((1, 4), 0.25), "f": np.array([1]), "receiver": np.array([0]), "dtype": np.float64}
    >>> apply_streamed(bm.rule("ios"), [own], lies, [own], block=2, **told).coefficients.round(2)
    array([[0.33, 0.33, 0.33, 0.  ]])
    >>> own.round(2)
    array([0.67, 0.67, 0.67, 0.67, 0.67])
    """
    block = BLOCK if block is None else whole("block", block, 1)
    parts = rule.consists_of
    if parts is None or not streams(rule):
        raise ConfigError(f"rule {rule.name} cannot be computed in blocks; use one such as IOS, or leave out block")
    remembers = isinstance(parts, Choosing) and parts.remembers
    index = own_slots(*weight.shape) if index is None else index
    present = np.ones(index.shape, bool) if present is None else present.copy()
    if remembers and state is None:
        state = rule.init(np.array([vector[: len(vector)] for vector in own], dtype))
    reader = _Reader(own, messages, state if remembers and state is not None else (), np.dtype(dtype), block)
    peak, gram = _first_pass(reader, isinstance(parts, Choosing))
    if not np.isfinite(peak[: len(own)]).all() or not np.isfinite(peak[reader.past :]).all():
        raise ConfigError("own must be finite, got a vector with NaN or infinity; restart from a checkpoint")
    present &= (np.isfinite(peak) & [row is not None for row in reader.rows])[index]
    weight = weight if present.all() else silence(weight, present)
    arrivals = Arrivals(
        own=len(own),
        messages=len(messages),
        index=index,
        weight=weight,
        present=present,
        f=f,
        receiver=receiver,
        b=b,
        dtype=reader.dtype,
    )
    bound, kept = settle(arrivals, parts.feasible)
    if isinstance(parts, Ranking):
        reader.tame(peak)
        _ranked(parts, reader, arrivals, bound, kept, out)
        return Streamed(present=present, coefficients=None, kept=kept)
    if not _usual(peak, len(own), reader.dtype):
        reader.tame(peak)
        gram = sum((pool.basis.gram for _, pool in reader), np.zeros_like(gram))
    chosen = _coefficients(rule.name, parts, reader, arrivals, bound, kept, gram, round)
    _mixed(reader, arrivals, chosen, kept, out)
    return Streamed(present=present, coefficients=chosen[:, : index.shape[1]], kept=kept)


class _Reader:
    """Blocks of all rows of the pool: own, messages, anchors; zeros where a message is missing or not usable."""

    def __init__(self, own: Vectors, messages: Vectors, anchors: Vectors, dtype: np.dtype[Any], block: int) -> None:
        self.rows: list[Any] = [*own, *messages, *anchors]
        self.own, self.past, self.dtype = len(own), len(own) + len(messages), dtype
        self.columns, self.block = len(own[0]), block
        self.factor = np.ones(len(self.rows))
        self.peak = np.ones(len(self.rows))
        for row in self.rows:
            if row is not None and len(row) != self.columns:
                raise ConfigError(f"vectors must have the same length, got {self.columns} and {len(row)}")

    def __iter__(self) -> Iterator[tuple[slice, Pool]]:
        room = np.empty((len(self.rows), min(self.block, self.columns)), self.dtype)
        for start in range(0, self.columns, self.block):
            part = slice(start, min(self.columns, start + self.block))
            size = part.stop - part.start
            # a contiguous array, whatever the size of the last block
            rows = room.reshape(-1)[: len(self.rows) * size].reshape(len(self.rows), size)
            for place, (row, factor) in enumerate(zip(self.rows, self.factor.tolist(), strict=True)):
                if row is None or factor == 0.0:
                    rows[place] = 0.0
                else:
                    rows[place] = row[part]
                    if factor != 1.0:
                        rows[place] *= self.dtype.type(factor)
            yield part, self.pool(rows)

    def pool(self, rows: Array) -> Pool:
        """The pool of a block, whose peaks are those of the whole vectors."""
        anchors = rows[self.past :] if len(rows) > self.past else None
        pool = Pool(rows[: self.own], rows[self.own : self.past], anchors=anchors)
        pool.__dict__["peak"] = self.peak
        return pool

    def tame(self, peak: Floats) -> None:
        """Silence what is not finite and scale down what is too far, from now on."""
        far = np.isfinite(peak) & (peak > FARTHEST)
        if far[: self.own].any():
            raise ConfigError(f"own must be below {FARTHEST:g}, got {peak[: self.own].max():g}; lower the step size")
        scale = np.exp2(np.where(far, np.floor(np.log2(FARTHEST / np.where(far, peak, FARTHEST))), 0.0))
        self.factor = np.where(np.isfinite(peak), scale, 0.0)
        self.peak = np.where(np.isfinite(peak), peak, 0.0) * self.factor


def _first_pass(reader: _Reader, products: bool) -> tuple[Floats, Floats]:
    """(P,) the peaks of all rows, and their inner products as if nothing were unusual."""
    peak = np.zeros(len(reader.rows))
    gram = np.zeros((len(reader.rows), len(reader.rows)))
    with np.errstate(all="ignore"):
        for _, pool in reader:
            parts = (pool.own, pool.messages, pool.anchors)
            np.maximum(peak, np.concatenate([peaks(rows) for rows in parts if rows is not None]), out=peak)
            if products and peak.max(initial=0.0) <= HUGE[reader.dtype]:
                gram += pool.basis.gram
    return peak, gram


def _usual(peak: Floats, own: int, dtype: np.dtype[Any]) -> bool:
    """Whether the first pass counts: nothing is huge, and no receiver's model is far larger than another."""
    small = bool((peak <= HUGE[dtype]).all())
    return small and bool(peak[:own].max(initial=0.0) <= FAR * peak[:own].min(initial=np.inf))


def _coefficients(
    name: str,
    parts: Choosing,
    reader: _Reader,
    arrivals: Arrivals,
    f: Integers,
    kept: Booleans,
    gram: Floats,
    round: Round,
) -> Floats:
    """(R, K) what the rule chooses, with a last slot for its memory if it has one."""
    index, weight, present = arrivals.index, arrivals.weight, arrivals.present
    if parts.remembers:
        index, weight, present = anchored_slots(arrivals.size, index, weight, present)
    chosen = weight
    if parts.coefficients is not None:
        pool = reader.pool(np.zeros((len(reader.rows), 1), reader.dtype))
        pool.basis.__dict__["gram"] = gram
        inner = np.empty((*index.shape, index.shape[1]))
        gather_blocks(pool.inner, index, present, inner)
        seen = Block(
            inner=inner,
            weight=weight,
            present=present,
            f=f,
            receiver=arrivals.receiver,
            tie=tie_tolerance(reader.dtype),
            round=round,
            b=arrivals.b,
        )
        chosen = checked(parts.coefficients(seen), weight.shape, name)
    kept |= ~np.isfinite(chosen).all(axis=1)
    return np.where(kept[:, None], np.arange(chosen.shape[1]) == 0, chosen)


def _mixed(reader: _Reader, arrivals: Arrivals, chosen: Floats, kept: Booleans, out: Vectors) -> None:
    index = arrivals.index
    if chosen.shape[1] > index.shape[1]:
        index, _, _ = anchored_slots(arrivals.size, index, arrivals.weight, arrivals.present)
    matrix = np.zeros((len(index), len(reader.rows)))
    scatter(index, chosen, matrix)
    for part, pool in reader:
        _write(out, part, pool.basis.mix(matrix), pool, kept)


def _ranked(parts: Ranking, reader: _Reader, arrivals: Arrivals, f: Integers, kept: Booleans, out: Vectors) -> None:
    present = arrivals.present
    if kept.any():
        f, present = np.where(kept, 0, f), present.copy()
        present[kept, 1:] = False
    ranks = parts.ranks(present.sum(axis=1), f)
    for part, pool in reader:
        made = rank_mean((pool.own, pool.messages), arrivals.index, present, *ranks, apart=parts.apart)
        _write(out, part, made, pool, kept)


def _write(out: Vectors, part: slice, made: Array, pool: Pool, kept: Booleans) -> None:
    """The results of a block; the block's own vectors are copies, so `out` may be where they came from."""
    for row, target in enumerate(out):
        target[part] = pool.own[row] if kept[row] else made[row]
