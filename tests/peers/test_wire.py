"""The wire format: round trips, damage, and a fuzzed decoder that raises nothing but its own error."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.channels import Stage, stages
from byzmesh.channels.base import Context
from byzmesh.errors import ConfigError, PeerError
from byzmesh.peers.channel_key import FORMER
from byzmesh.peers.wire import EVERYONE, HEADER, Format, WireError

WIRES: dict[str, Any] = {"raw": [], **FORMER}
CHANNELS: dict[str, Any] = WIRES | {
    "bfloat16": "bfloat16",
    "int4": "int4",
    "rand-k": {"name": "rand-k", "shared": False},
    "top-k": {"name": "top-k", "fraction": 0.3},
    "clip": ["clip", "gaussian-noise"],
    "three": ["clip", {"name": "top-k", "fraction": 0.3}, "int8"],
}
FORMATS = [Format(5, 37, dtype, channel) for dtype in ("float32", "float64") for channel in WIRES.values()]
EVERY_FORM = [Format(5, 37, "float32", channel) for channel in CHANNELS.values()]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wire", WIRES)
def test_round_trip(dtype: str, wire: str) -> None:
    form = Format(5, 37, dtype, WIRES[wire])
    vector = np.random.default_rng(0).normal(size=37).astype(form.dtype)
    data = form.encode(vector, sender=3, round=11)
    assert len(data) == form.size
    message = form.decode(data, sender=3)
    assert (message.sender, message.round) == (3, 11)
    assert message.vector.dtype == np.dtype(form.dtype)
    worst = {"raw": 0.0, "float16": 2e-3, "int8": np.abs(vector).max() / 254 * 1.001}[wire]
    assert np.abs(message.vector - vector).max() <= worst


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=600), st.sampled_from(list(WIRES)))
@settings(max_examples=60, deadline=None)
def test_any_finite_vector_travels(values: list[float], wire: str) -> None:
    vector = np.array(values, np.float32)
    form = Format(0, len(vector), "float32", WIRES[wire])
    out = form.decode(form.encode(vector, 1, 0), 1).vector
    assert np.isfinite(out).all()
    if wire == "raw":
        assert np.array_equal(out, vector)
    if wire == "int8":
        block = np.abs(np.pad(vector, (0, -len(vector) % 256)).reshape(-1, 256)).max(axis=1)
        assert (np.abs(out - vector) <= np.repeat(block, 256)[: len(vector)] / 254 * 1.001).all()


def test_int8_of_large_vectors_is_a_quarter() -> None:
    assert Format(0, 1_000_000, "float32", "int8").size < 0.26 * Format(0, 1_000_000).size
    assert Format(0, 1_000_000).size < 4_000_000 * 1.0001


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("size", lambda form, data: data + b"\0"),
        ("size", lambda form, data: data[:7]),
        ("version", lambda form, data: data[:4] + b"\x01" + data[5:]),
        ("dtype", lambda form, data: data[:5] + b"\x02" + data[6:]),
        ("sender", lambda form, data: form.encode(np.ones(37, np.float32), 4, 0)),
        ("shape", lambda form, data: data[:24] + struct.pack("<I", 36) + data[28:]),
        ("run", lambda form, data: Format(6, 37).encode(np.ones(37, np.float32), 3, 0)),
        ("finite", lambda form, data: form.encode(np.full(37, np.nan, np.float32), 3, 0)),
        ("finite", lambda form, data: form.encode(np.full(37, np.inf, np.float32), 3, 0)),
    ],
)
def test_refusals_say_why(reason: str, change: Callable[[Format, bytes], bytes]) -> None:
    form = FORMATS[0]
    data = bytes(form.encode(np.ones(37, np.float32), 3, 0))
    with pytest.raises(WireError) as caught:
        form.decode(bytes(change(form, data)), 3)
    assert caught.value.reason == reason


def test_readdressed_message_is_the_same_to_somebody_else() -> None:
    form = FORMATS[0]
    data = form.encode(np.ones(37, np.float32), 3, 9)
    assert struct.unpack_from("<H", data)[0] == EVERYONE
    other = form.readdress(data, 7)
    assert struct.unpack_from("<H", other)[0] == 7
    assert form.decode(other, 3).round == 9


CASES_PER_EXAMPLE = 200


@given(
    st.integers(0, 2**63),
    st.sampled_from([*FORMATS, *EVERY_FORM]),
    st.sampled_from(["noise", "flip", "cut", "header", "payload"]),
)
@settings(max_examples=500, deadline=None)
def test_fuzzed_decoder_raises_only_its_own_error(seed: int, form: Format, kind: str) -> None:
    """500 examples of 200 mutations: 100,000 cases."""
    random = np.random.default_rng(seed)
    good = form.encode(random.normal(size=37), 3, int(random.integers(1 << 62)))
    passed = 0
    for _ in range(CASES_PER_EXAMPLE):
        data = bytearray(good)
        if kind == "noise":
            data = bytearray(random.bytes(int(random.integers(0, 2 * form.size))))
        elif kind == "flip":
            for place in random.integers(0, 8 * len(data), 3):
                data[place // 8] ^= 1 << int(place % 8)
        elif kind == "cut":
            data = data[: int(random.integers(0, len(data)))]
        elif kind == "header":
            start = int(random.integers(0, HEADER.size - 8))
            data[start : start + 8] = random.bytes(8)
        else:
            start = int(random.integers(HEADER.size, len(data)))
            data[start:] = random.bytes(len(data) - start)
        try:
            message = form.decode(bytes(data), 3)
        except WireError:
            continue
        passed += 1
        assert np.isfinite(message.vector).all() and message.vector.shape == (37,)
    assert passed == 0 or kind not in ("noise", "cut")  # any finite vector is a message


@pytest.mark.parametrize("options", [{"stages": "zip"}, {"dtype": "float16"}, {"dimension": 0}])
def test_bad_formats(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Format(**{"run": 0, "dimension": 3, **options})


@pytest.mark.parametrize(
    ("dtype", "wire", "size", "digest"),
    [
        ("float32", "raw", 1248, "4bb99ddb40b65184"),
        ("float32", "float16", 648, "bece4fbfe8115b26"),
        ("float32", "int8", 352, "faba6b90b4c3ac27"),
        ("float64", "raw", 2448, "358d08cfb54f5cb8"),
        ("float64", "float16", 648, "bece4fbfe8115b26"),
        ("float64", "int8", 352, "faba6b90b4c3ac27"),
    ],
)
def test_the_bytes_are_those_of_version_2(dtype: str, wire: str, size: int, digest: str) -> None:
    data = Format(5, 301, dtype, WIRES[wire]).encode(np.linspace(-3, 70000, 301).astype(dtype), 3, 11)
    assert (len(data), hashlib.sha256(data).hexdigest()[:16]) == (size, digest)


@pytest.fixture
def signs() -> Iterator[type[Stage]]:
    """A stage of a third party: one bit per coordinate."""

    @dataclass(frozen=True, repr=False)
    class Signs(Stage):
        """The signs alone."""

        name = "signs"

        def sizes(self, width: int) -> tuple[int, int]:
            return -(-width // 8), 0

        def send(self, values: np.ndarray, context: Context) -> tuple[np.ndarray, np.ndarray]:
            return np.packbits(values >= 0, axis=1), values[:, :0]

        def receive(self, data: np.ndarray, values: np.ndarray, width: int, context: Context) -> np.ndarray:
            return np.where(np.unpackbits(data, axis=1)[:, :width], 1.0, -1.0).astype(context.dtype)

    with stages.temporary():
        stages.register("signs")(Signs)
        yield Signs


def test_a_stage_is_one_class(signs: type[Stage]) -> None:
    form = Format(0, 11, "float32", ["signs"])
    data = form.encode(np.linspace(-1, 1, 11, dtype=np.float32), 3, 0)
    assert (form.payload, data[5]) == (2, form.encoding) and form.encoding >= 16
    assert form.decode(data, 3).vector.tolist() == [-1.0] * 5 + [1.0] * 6


def test_what_a_stage_does_wrong_is_said(signs: type[Stage], monkeypatch: pytest.MonkeyPatch) -> None:
    form = Format(0, 64, "float32", ["signs"])
    data = form.encode(np.ones(64), 3, 0)
    monkeypatch.setattr(signs, "receive", lambda self, data, values, width, context: np.ones((1, 3)))
    with pytest.raises(WireError, match=r"channel \[stage\('signs'\)\] gives \(1, 3\) numbers"):
        form.decode(data, 3)
    monkeypatch.setattr(signs, "receive", lambda self, data, values, width, context: 1 / 0)
    with pytest.raises(WireError, match="cannot read it: division by zero") as caught:
        form.decode(data, 3)
    assert caught.value.reason == "payload"
    monkeypatch.setattr(signs, "send", lambda self, values, context: (np.zeros((1, 7), np.uint8), values[:, :0]))
    with pytest.raises(PeerError, match="gives 7 bytes, not 8"):
        form.encode(np.full(64, 7.0), 3, 0)


@pytest.mark.parametrize("theirs", [(), "float16", ["top-k", "int8"], [{"name": "top-k", "fraction": 0.2}, "int8"]])
def test_another_channel_is_refused_by_name(theirs: Any) -> None:
    form = Format(0, 600, "float32", ["rand-k", "int8"])
    data = bytes(Format(0, 600, "float32", theirs).encode(np.ones(600), 3, 0))
    assert len(data) <= form.largest
    with pytest.raises(WireError, match="the channels of the network files differ") as caught:
        form.decode(data, 3)
    assert caught.value.reason == "channel"
