"""The wire format: round trips, damage, and a fuzzed decoder that raises nothing but its own error."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError, PeerError
from byzmesh.peers.codecs import Codec, codecs
from byzmesh.peers.wire import EVERYONE, HEADER, Format, WireError

WIRES = ("raw", "float16", "int8")
FORMATS = [Format(5, 37, dtype, wire) for dtype in ("float32", "float64") for wire in WIRES]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: f"{form.dtype}-{form.wire}")
def test_round_trip(form: Format) -> None:
    vector = np.random.default_rng(0).normal(size=37).astype(form.dtype)
    data = form.encode(vector, sender=3, round=11)
    assert len(data) == form.size
    message = form.decode(data, sender=3)
    assert (message.sender, message.round) == (3, 11)
    assert message.vector.dtype == np.dtype(form.dtype)
    worst = {"raw": 0.0, "float16": 2e-3, "int8": np.abs(vector).max() / 254 * 1.001}[form.wire]
    assert np.abs(message.vector - vector).max() <= worst


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=600), st.sampled_from(WIRES))
@settings(max_examples=60, deadline=None)
def test_any_finite_vector_travels(values: list[float], wire: str) -> None:
    vector = np.array(values, np.float32)
    form = Format(0, len(vector), "float32", wire)
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


@pytest.mark.parametrize("bit", [0, 7, 300, 8 * HEADER.size + 3, 8 * HEADER.size + 31 * 32 + 5])
def test_one_flipped_bit_is_found(bit: int) -> None:
    form = FORMATS[0]
    data = form.encode(np.ones(37, np.float32), 3, 11)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(WireError):
        form.decode(data, 3)


def test_two_flipped_sign_bits_and_swapped_words_are_found() -> None:
    form = Format(0, 64)
    data = form.encode(np.arange(64, dtype=np.float32), 3, 0)
    for change in ((47, 55), (63, 47 + 16)):
        damaged = bytearray(data)
        for place in change:
            damaged[place] ^= 0x80
        if damaged != data:
            with pytest.raises(WireError, match="checksum"):
                form.decode(damaged, 3)
    damaged = bytearray(data)
    damaged[56:64], damaged[64:72] = data[64:72], data[56:64]
    with pytest.raises(WireError, match="checksum"):
        form.decode(damaged, 3)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("size", lambda form, data: data + b"\0"),
        ("size", lambda form, data: data[:7]),
        ("version", lambda form, data: data[:4] + b"\x02" + data[5:]),
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


@given(st.integers(0, 2**63), st.sampled_from(FORMATS), st.sampled_from(["noise", "flip", "cut", "header", "payload"]))
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
    assert passed <= 2 or kind == "flip"


@pytest.mark.parametrize("options", [{"wire": "zip"}, {"dtype": "float16"}, {"dimension": 0}])
def test_bad_formats(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Format(**{"run": 0, "dimension": 3, **options})


@pytest.mark.parametrize(
    ("dtype", "wire", "size", "digest"),
    [
        ("float32", "raw", 1248, "ea317cc5abb782a5"),
        ("float32", "float16", 648, "4710251e5500c682"),
        ("float32", "int8", 352, "070360475986bd9b"),
        ("float64", "raw", 2448, "63c0416085f27f03"),
        ("float64", "float16", 648, "4710251e5500c682"),
        ("float64", "int8", 352, "070360475986bd9b"),
    ],
)
def test_the_bytes_are_those_of_version_1(dtype: str, wire: str, size: int, digest: str) -> None:
    data = Format(5, 301, dtype, wire).encode(np.linspace(-3, 70000, 301).astype(dtype), 3, 11)
    assert (len(data), hashlib.sha256(data).hexdigest()[:16]) == (size, digest)


@pytest.fixture
def signs() -> Iterator[type[Codec]]:
    """A codec of a third party: one bit per coordinate."""

    class Signs(Codec):
        """The signs alone."""

        byte = 200

        def encode(self, vector: np.ndarray) -> bytes:
            return np.packbits(vector >= 0).tobytes()

        def decode(self, payload: memoryview, dimension: int, dtype: str) -> np.ndarray:
            bits = np.unpackbits(np.frombuffer(payload, np.uint8))[:dimension]
            return np.where(bits, 1.0, -1.0).astype(dtype)

    with codecs.temporary():
        codecs.register("signs")(Signs)
        yield Signs


def test_a_codec_is_one_class(signs: type[Codec]) -> None:
    form = Format(0, 11, wire="signs")
    data = form.encode(np.linspace(-1, 1, 11, dtype=np.float32), 3, 0)
    assert (form.payload, data[5]) == (2, 200)
    assert form.decode(data, 3).vector.tolist() == [-1.0] * 5 + [1.0] * 6
    with pytest.raises(WireError, match="encoding 200, 1 expected"):
        Format(0, 4).decode(bytes(Format(0, 128, wire="signs").encode(np.ones(128), 3, 0)), 3)


def test_what_a_codec_does_wrong_is_said(signs: type[Codec], monkeypatch: pytest.MonkeyPatch) -> None:
    form = Format(0, 64, wire="signs")
    data = form.encode(np.ones(64), 3, 0)
    monkeypatch.setattr(signs, "decode", lambda self, payload, dimension, dtype: np.ones(3))
    with pytest.raises(WireError, match=r"codec signs must decode to \(64,\), got \(3,\)"):
        form.decode(data, 3)
    monkeypatch.setattr(signs, "decode", lambda self, payload, dimension, dtype: 1 / 0)
    with pytest.raises(WireError, match="codec signs cannot decode the message: division by zero"):
        form.decode(data, 3)
    monkeypatch.setattr(signs, "encode", lambda self, vector: bytes(int(vector[0])))
    with pytest.raises(PeerError, match="encodes this vector in 7 bytes and zeros in 8"):
        form.encode(np.full(64, 7.0), 3, 0)
    monkeypatch.setattr(signs, "byte", 4)
    with pytest.raises(ConfigError, match="codecs signs and int8 both have the byte 4"):
        Format(0, 64, wire="signs")
