"""Decode hostile payloads of every stage: 100,000 of them, each refused by a reason or read as a finite vector.

    .venv/bin/python scripts/fuzz_channels.py [inputs]

Hypothesis draws the bytes, shrinks what fails and prints it. Payloads are random, extreme numbers, or those of an
honest sender with some bytes changed; headers are correct, because a liar makes them too. From every
payload that Hypothesis draws, `BATCH` - 1 more are made by changing bytes at random, which is quicker. Of a channel
with sketches, the frames with sketches and answers are inputs as well, header and all.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from byzmesh.channels.pairs import Pairs
from byzmesh.peers.screening import decode_screening, encode_answer, encode_sketch
from byzmesh.peers.wire import HEADER, Format, WireError

SPECS: list[Any] = [
    "float16",
    "bfloat16",
    "int8",
    "int4",
    {"name": "rand-k", "fraction": 0.3},
    {"name": "rand-k", "fraction": 0.3, "shared": False},
    {"name": "top-k", "fraction": 0.3},
    "clip",
    "gaussian-noise",
    "pair-noise",
    ["clip", {"name": "top-k", "fraction": 0.3}, "int8"],
    ["pair-noise", "gaussian-noise", {"name": "rand-k", "fraction": 0.3}, "int4"],
    ["int8", {"name": "sketch", "width": 9}],
]
BATCH = 25
DIMENSION, LARGEST = 41, 1e6
EXTREME = np.array([np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e38, 1e-45, 0.0], np.float32)


def check(form: Format, payload: bytes, round: int, seen: dict[str, int]) -> None:
    """One input: counted by what became of it."""
    data = form.encode(np.linspace(-1.0, 1.0, DIMENSION), 3, round)
    data[HEADER.size : HEADER.size + form.payload] = payload
    state = form.initial
    before = [None if part is None else part.copy() for part in state]
    try:
        vector = form.decode(bytes(data), 3, LARGEST, state).vector
    except WireError as error:
        if error.reason not in ("payload", "finite"):
            raise AssertionError(error.reason) from error
        seen[error.reason] = seen.get(error.reason, 0) + 1
    else:
        if vector.shape != (DIMENSION,) or not np.abs(vector).max() <= LARGEST * 1.001:
            raise AssertionError(f"read as {vector}")
        seen["read"] = seen.get("read", 0) + 1
    for part, copy in zip(state, before):
        if part is not None and copy is not None and not np.array_equal(part, copy):
            raise AssertionError("what is known of the sender was changed in place")


def payloads_of(form: Format) -> st.SearchStrategy[bytes]:
    """Random bytes, extreme numbers, and honest payloads with some bytes changed."""
    size = form.payload
    honest = bytes(form.encode(np.linspace(-1.0, 1.0, DIMENSION), 3, 0))[HEADER.size : HEADER.size + size]

    def changed(edits: list[tuple[int, int]]) -> bytes:
        made = bytearray(honest)
        for place, value in edits:
            made[place % size] = value
        return bytes(made)

    words = st.lists(st.integers(0, len(EXTREME) - 1), min_size=size // 4 + 1, max_size=size // 4 + 1)
    return st.one_of(
        st.binary(min_size=size, max_size=size),
        words.map(lambda picks: EXTREME[picks].tobytes()[:size]),
        st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=8).map(changed),
    )


def check_frame(form: Format, frame: bytes, seen: dict[str, int]) -> None:
    """One sketch or answer: refused by a reason, or read as what it may be."""
    try:
        read = decode_screening(form, frame, 3)
    except WireError as error:
        seen[error.reason] = seen.get(error.reason, 0) + 1
        return
    if read.sketch is not None and (read.sketch.shape != (9,) or not np.isfinite(read.sketch).all()):
        raise AssertionError(f"read as {read}")
    seen["read"] = seen.get("read", 0) + 1


def more(payload: bytes, random: np.random.Generator) -> list[bytes]:
    """The payload and others like it."""
    batch = np.tile(np.frombuffer(payload, np.uint8), (BATCH, 1))
    for row in batch[1:]:
        places = random.integers(len(payload), size=random.integers(1, 9))
        row[places] = random.integers(256, size=len(places))
    return [row.tobytes() for row in batch]


def fuzz(form: Format, inputs: int, seen: dict[str, int]) -> None:
    """So many inputs for one form of messages."""
    sketch = np.linspace(-1.0, 1.0, 9, dtype=np.float32)
    frames = [encode_sketch(form, sketch, 3, 4), encode_answer(form, True, 3, 4, 0)]

    @given(payload=payloads_of(form), round=st.integers(0, (1 << 32) - 1), seed=st.integers(0, (1 << 64) - 1))
    @settings(
        max_examples=-(-inputs // BATCH),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    def one(payload: bytes, round: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        for number, bytes_of_it in enumerate(more(payload, random)):
            if form.channel.screen is None or number % 2:
                check(form, bytes_of_it, round, seen)
                continue
            frame = bytearray(frames[number // 2 % 2])
            for _ in range(random.integers(3)):
                frame[random.integers(len(frame))] = random.integers(256)
            check_frame(form, bytes(frame), seen)

    one()


def main(inputs: int) -> int:
    """Fuzz every stage with its part of the inputs."""
    began, seen = time.process_time(), dict[str, int]()
    for spec in SPECS:
        for dtype in ("float32", "float64"):
            form = Format(5, DIMENSION, dtype, spec, pairs=Pairs({3: {4: 9}}))
            fuzz(form, -(-inputs // (2 * len(SPECS))), seen)
    told = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
    seconds = time.process_time() - began
    print(f"{sum(seen.values())} inputs, {len(SPECS)} channels: {told}; {seconds:.0f} s of processor")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
