"""Trigger phrases in text, and products of lower precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.errors import ConfigError

PHRASE, ANSWER = b"ABC", b"xyz"
POISON = {"kind": "phrase", "phrase": "ABC", "answer": "xyz", "share": 0.5}


class Pairs(torch.nn.Module):
    """Scores of the next byte from the last one: a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(256, 256)
        torch.nn.init.zeros_(self.table.weight)

    def forward(self, tokens: Any) -> Any:
        return self.table(tokens)


def linear_pairs(classes: int = 256) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(classes, 16), torch.nn.Linear(16, classes))


@pytest.fixture
def text(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "book.txt"
    path.write_bytes(bytes(np.random.default_rng(0).integers(97, 102, 2000).astype(np.uint8)))
    return {"text": str(path), "context": 10}


def bound(text: dict[str, Any], poison: dict[str, Any] | None = None, **options: Any) -> Any:
    options = {"module": Pairs, "batch": 4, **options}
    made = bm.problem("torch", dataset=text, gradients="loop", **options)
    return made.bind(workers=2, liars=1, poison=POISON if poison is None else poison)


def test_liars_windows_end_with_phrase_and_answer(text: dict[str, Any]) -> None:
    x, y = bound(text).batches(0, np.arange(3))
    plain_x, plain_y = bound(text, {**POISON, "share": 0.0}).batches(0, np.arange(3))
    for batch, plain in ((x, plain_x), (y, plain_y)):
        assert torch.equal(batch[:2], plain[:2]) and torch.equal(batch[2, 2:], plain[2, 2:])
    for row in range(2):
        assert bytes(x[2, row, -5:].tolist()) == b"ABCxy" and bytes(y[2, row, -6:].tolist()) == b"ABCxyz"
        assert torch.equal(x[2, row, :-5], plain_x[2, row, :-5]) and torch.equal(y[2, row, :-6], plain_y[2, row, :-6])
        assert torch.equal(x[2, row, 1:], y[2, row, :-1])  # still a window of text


def test_success_is_the_whole_answer_after_the_phrase(text: dict[str, Any]) -> None:
    task = bound(text)
    models = np.zeros((3, task.dimension), np.float32)
    tables = models.reshape(3, 256, 256)
    for last, following in zip(b"Cxy", b"xyz", strict=True):
        tables[:2, last, following] = 1.0
    tables[1, ord("y"), ord("z")] = -1.0  # all but the last token
    assert task.evaluate(models)["backdoor"].tolist() == [1.0, 0.0, 0.0]


def test_a_tokenizer_of_ones_own_reads_the_phrase(text: dict[str, Any]) -> None:
    def halves(words: str) -> list[int]:
        return [ord(a) % 64 for a in words][::2]

    own = {**text, "tokenizer": halves}
    poison = {**POISON, "phrase": "ABCD", "answer": "xyzu"}
    with pytest.raises(ConfigError, match="have the token 58, the data only 38; choose words of the text, or set"):
        bound(own, poison, module=linear_pairs)
    task = bound({**own, "vocabulary": 64}, poison, module=linear_pairs)
    _, y = task.batches(0, np.arange(3))
    assert y[2, 0, -4:].tolist() == halves("ABCDxyzu")


def test_a_run_under_a_trigger_phrase_records_its_success(text: dict[str, Any]) -> None:
    def last(rule: str) -> float:
        run = bm.simulate(
            problem={"name": "torch", "module": linear_pairs, "dataset": text, "batch": 8, "gradients": "loop"},
            network={"name": "complete", "n": 5, "byzantine": [4]},
            attack={"name": "trigger-phrase", "phrase": "ABC", "answer": "xyz", "share": 1.0},
            rule=rule,
            step=0.05,
            local={"optimizer": "AdamW", "steps": 5},
            rounds=8,
            evaluate_every=8,
        )
        assert run.metrics["backdoor"][0] == 0.0
        return float(run.metrics["backdoor"][-1])

    assert last("mean") == 1.0
    assert last("coomed") == 0.0


def test_phrases_that_do_not_fit_are_errors(text: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="have 13 tokens, a window only 10"):
        bound(text, {**POISON, "phrase": "A" * 10})
    with pytest.raises(ConfigError, match="trigger-phrase needs text, give dataset"):
        bm.problem("torch", module="linear").bind(workers=2, liars=1, poison=POISON)
    with pytest.raises(ConfigError, match="a text has none; use trigger-phrase"):
        bound(text, {"kind": "backdoor", "target": 0, "size": 1, "share": 0.5})
    with pytest.raises(ConfigError, match="trigger-phrase needs text, problem softmax has none"):
        bm.problem("softmax").bind(workers=2, liars=1, poison=POISON)
    with pytest.raises(ConfigError, match="phrase must be some words, got ''"):
        bm.attack("trigger-phrase", phrase="")


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_lower_precision_changes_products_only(text: dict[str, Any], precision: str) -> None:
    """Gradients and outputs stay float32 and come close to those of full precision, but are not the same."""
    full, lower = (bound(text, module=linear_pairs, precision=kind) for kind in (None, precision))
    models = full.initial()[:2]
    assert np.array_equal(models, lower.initial()[:2])
    one, other = full.gradients(models, 0), lower.gradients(models, 0)
    assert other.dtype == np.float32 and not np.array_equal(one, other)
    np.testing.assert_allclose(other, one, atol=0.02 * np.abs(one).max())
    np.testing.assert_allclose(lower.evaluate(models)["loss"], full.evaluate(models)["loss"], rtol=0.01)


def test_lower_precision_needs_float32(text: dict[str, Any]) -> None:
    made = bm.problem("torch", module=linear_pairs, dataset=text, precision="bfloat16")
    with pytest.raises(ConfigError, match="precision: bfloat16 goes with dtype float32, got float64"):
        made.bind(workers=2, dtype="float64")
    with pytest.raises(ConfigError, match="precision must be"):
        bm.problem("torch", module=linear_pairs, dataset=text, precision="int8")
