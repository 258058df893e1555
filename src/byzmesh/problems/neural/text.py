"""Text as data: `dataset: {text: book.txt, context: 64, tokenizer: bytes}`.

A sample is a window of `context` + 1 tokens; the model sees the first `context` of them and predicts, at each position,
the next one. Windows follow each other without overlap, so that every token is predicted once. The last tenth of the
text is for testing.

    tokenizer   `bytes` (256 tokens), or package.module:function, file.py:function or in Python a function from the text
                to whole numbers of at least 0
    vocabulary  how many tokens there are; without it 256 bytes, or as many as the text has: say it where another text
                must fit the same module

Partitions see the text as ten consecutive parts: `one-class` gives each worker parts of its own, `iid` windows from
everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.checks import whole
from byzmesh.errors import ConfigError, DataError, UnknownOption, nearest
from byzmesh.problems.data.datasets import Dataset
from byzmesh.problems.neural.modules import find, label
from byzmesh.types import Integers

OPTIONS: dict[str, Any] = {"text": None, "context": 64, "tokenizer": "bytes"}
VOCABULARY = "vocabulary"
PARTS = 10
"""Consecutive parts that partitions take for classes."""
TESTED = 10
"""One in so many windows is for testing."""


def canonical_text(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a text with every option written out.

    >>> canonical_text({"text": "book.txt"})
    {'text': 'book.txt', 'context': 64, 'tokenizer': 'bytes'}
    """
    for option in spec:
        if option not in (*OPTIONS, VOCABULARY):
            raise UnknownOption(f"a text has no option {option!r}: {nearest(str(option), [*OPTIONS, VOCABULARY])}")
    given = {**OPTIONS, **spec}
    if not isinstance(given["text"], str):
        raise ConfigError(f"dataset text must be the path of a text file, got {given['text']!r}")
    whole("dataset context", given["context"], 1)
    if VOCABULARY in given:
        whole("dataset vocabulary", given[VOCABULARY], 2)
    tokenizer = given["tokenizer"]
    if callable(tokenizer):
        return {**given, "tokenizer": label(tokenizer)}
    if tokenizer != "bytes" and not (isinstance(tokenizer, str) and ":" in tokenizer):
        raise ConfigError(f"dataset tokenizer must be bytes or package.module:function, got {tokenizer!r}")
    return given


def read_text(spec: Mapping[str, Any], data_dir: str | None) -> Dataset:
    """The windows of a text file."""
    given = canonical_text(spec)
    path = Path(given["text"]).expanduser()
    path = path if data_dir is None else Path(data_dir).expanduser() / path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the text {path}: {error.strerror}; give the path of a text file") from None
    tokens, count = _tokens(content, spec.get("tokenizer", "bytes"), path)
    largest, count = tokens.max(initial=0), given.get(VOCABULARY, count)
    if largest >= count:
        raise DataError(f"dataset vocabulary must be above every token of {path}, got {count}, there is a {largest}")
    context = given["context"]
    windows = (len(tokens) - 1) // context
    if windows < 2:
        raise DataError(
            f"{path} has {len(tokens)} tokens, which is less than two windows of {context} + 1; give a longer text or "
            "a smaller context"
        )
    held_out = max(1, windows // TESTED)
    x = np.lib.stride_tricks.sliding_window_view(tokens, context + 1)[::context][:windows]
    part = np.arange(windows - held_out) * PARTS // (windows - held_out)
    return Dataset(
        name=path.name,
        train_x=x[:-held_out].copy(),
        train_y=part.astype(np.int64),
        test_x=x[-held_out:].copy(),
        test_y=np.zeros(held_out, np.int64),
        classes=count,
        shape=(context,),
        tokens=True,
    )


def tokens_of(text: str, spec: Mapping[str, Any]) -> Integers:
    """The tokens of a few words, by the tokenizer of a data set.

    >>> tokens_of("ab", {"text": "book.txt"})
    array([97, 98])
    """
    return _tokens(text.encode(), spec.get("tokenizer", "bytes"), Path("phrase"))[0]


def _tokens(content: bytes, tokenizer: Any, path: Path) -> tuple[Integers, int]:
    """The tokens of a text, and how many different ones there can be."""
    if tokenizer == "bytes":
        return np.frombuffer(content, np.uint8).astype(np.int64), 256
    function = tokenizer if callable(tokenizer) else find(tokenizer)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 ({error.reason} at byte {error.start}); use the tokenizer bytes"
        ) from None
    tokens = np.asarray(function(text))
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu" or (len(tokens) and tokens.min() < 0):
        raise DataError(
            f"the tokenizer must return whole numbers of at least 0, got {tokens.dtype} of shape {tokens.shape}"
        )
    return tokens.astype(np.int64), int(tokens.max(initial=0)) + 1
