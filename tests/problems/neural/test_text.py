"""Text, whole-number inputs and the built-in transformer: windows, losses and gradients by hand."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, DataError, UnknownOption

RING = {"name": "ring", "n": 4}
SMALL = {"name": "gpt", "width": 8, "depth": 1, "heads": 2}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of a small grammar: easy to learn, different at the beginning and at the end."""
    draw = np.random.default_rng(0)
    early, late = ["the cat sat. ", "a dog ran. "], ["no fish swam. ", "one owl flew. "]
    words = [(early if place < 400 else late)[int(draw.integers(2))] for place in range(800)]
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text("".join(words))
    return path


def letters(text: str) -> list[int]:
    return [ord(letter) - 31 if letter != "\n" else 0 for letter in text]


def task(book: Path, **more: Any) -> Any:
    problem = bm.problem("torch", module=SMALL, dataset={"text": str(book), "context": 12}, batch=3, **more)
    return problem.bind(workers=4, dtype="float64")


def test_every_token_is_predicted_once(book: Path) -> None:
    made, content = task(book), book.read_bytes()
    windows = (len(content) - 1) // 12
    x, y = (torch.cat(parts).numpy() for parts in zip(*made.samples.test()))
    held_out = windows // 10
    first = (windows - held_out) * 12
    assert bytes(x.reshape(-1).tolist()) == content[first : windows * 12]
    assert bytes(y.reshape(-1).tolist()) == content[first + 1 : windows * 12 + 1]
    seen = sorted(place for row in range(4) for place in made.samples.split.share(row).tolist())
    assert seen == list(range(windows - held_out))


def test_batches_are_windows_with_their_next_tokens(book: Path) -> None:
    x, y = task(book).batches(5, np.array([2]))
    assert x.shape == y.shape == (1, 3, 12) and x.dtype == torch.int64
    np.testing.assert_array_equal(x[..., 1:], y[..., :-1])


def test_one_class_gives_each_worker_a_part_of_the_text(book: Path) -> None:
    share = [task(book, partition="one-class").samples.split.share(row) for row in range(4)]
    assert all(first.max() < second.min() for first, second in pairwise(share))


@pytest.mark.parametrize("way", ["batched", "loop"])
def test_loss_and_gradient_are_those_of_a_plain_loop(book: Path, way: str) -> None:
    made = task(book, gradients=way)
    models = made.initial()
    module = bm.problems.neural.modules.make_factory(SMALL, (12,), 256)().double()
    x, y = made.batches(0, np.array([1]))
    bm.torch.load(module, models[1])
    loss = torch.nn.functional.cross_entropy(module(x[0]).reshape(-1, 256), y[0].reshape(-1))
    loss.backward()
    expected = torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()]).numpy()
    np.testing.assert_allclose(made.gradients(models, 0)[1], expected, rtol=1e-10, atol=1e-14)
    assert made.losses(models[1:2, None], 0, np.array([1]))[0, 0] == pytest.approx(float(loss.detach()))
    measured = made.evaluate(models[:1])
    assert measured["perplexity"][0] == pytest.approx(math.exp(measured["loss"][0]))
    assert 0.0 <= measured["accuracy"][0] <= 1.0


def test_the_embedding_and_the_last_layer_are_one(book: Path) -> None:
    names = task(book).layout.names
    assert names.count("token.weight") == 1 and not any("head" in name for name in names)


def test_a_transformer_sees_only_what_came_before() -> None:
    module = bm.problems.neural.modules.make_factory(SMALL, (12,), 50)()
    tokens = torch.arange(12)[None]
    changed = tokens.clone()
    changed[0, 7:] = 3
    with torch.no_grad():
        before, after = module(tokens), module(changed)
    torch.testing.assert_close(before[0, :7], after[0, :7])
    assert not torch.allclose(before[0, 7:], after[0, 7:])


def test_a_run_on_text_learns_and_records_perplexity(book: Path) -> None:
    run = bm.simulate(
        problem={"name": "torch", "module": SMALL, "dataset": {"text": str(book), "context": 12}, "batch": 8},
        network={"name": "complete", "n": 5, "byzantine": [4]},
        attack="sign-flipping",
        rule="ios",
        rounds=8,
        evaluate_every=8,
        step=0.01,
        local={"optimizer": "AdamW", "steps": 5},
    )
    first, last = run.metrics["perplexity"][[0, -1]]
    assert 200 < first < 300 and last < 0.2 * first


def test_a_tokenizer_of_ones_own(book: Path) -> None:
    made = bm.problem("torch", module=SMALL, dataset={"text": str(book), "context": 12, "tokenizer": letters})
    assert made.options["dataset"]["tokenizer"] == f"{__name__}:letters"
    bound: Any = made.bind(workers=2)
    assert bound.classes == max(letters(book.read_text())) + 1


def test_a_vocabulary_fits_other_texts_to_one_module(book: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("zzz{" * 40)
    for text in (book, tmp_path / "other.txt"):
        spec = {"text": str(text), "context": 12, "tokenizer": letters, "vocabulary": 100}
        assert resolve({"problem": {"name": "torch", "module": SMALL, "dataset": spec}, "network": RING})
        bound: Any = bm.problem("torch", module=SMALL, dataset=spec).bind(workers=2)
        assert bound.classes == 100
    with pytest.raises(DataError, match=r"vocabulary must be above every token of .*other.txt, got 90, there is a 92"):
        bm.problem("torch", module=SMALL, dataset={**spec, "vocabulary": 90}).bind(workers=2)


class Foreign(torch.nn.Module):
    """As a library has it: dropout, a mask, tied weights, and an object with `logits`."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.wte, self.drop = torch.nn.Embedding(tokens, 8), torch.nn.Dropout(0.2)
        self.register_buffer("mask", torch.ones(12, 12).tril())
        self.register_buffer("position_ids", torch.arange(12), persistent=False)
        self.lm_head = torch.nn.Linear(8, tokens, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids: Any) -> Any:
        x = self.drop(self.wte(input_ids))
        return SimpleNamespace(loss=None, logits=self.lm_head((self.mask / self.mask.sum(1, keepdim=True)) @ x))


@pytest.mark.parametrize("precision", [None, "bfloat16"])
def test_a_module_of_a_library_is_taken_as_it_is(book: Path, tmp_path: Path, precision: str | None) -> None:
    problem = {"dataset": {"text": str(book), "context": 12}, "batch": 4, "precision": precision, "test_samples": 20}
    run: Any = bm.prepare(
        problem={"name": "torch", "module": lambda classes: Foreign(classes), **problem},
        network={"name": "complete", "n": 4, "byzantine": [3]},
        attack="sign-flipping",
        local={"optimizer": lambda parameters: torch.optim.AdamW(parameters, betas=(0.8, 0.9)), "steps": 3},
        step=0.02,
        rounds=3,
    )
    models = run.run().models
    assert models.shape == (3, 256 * 8) and np.isfinite(models).all()
    state = bm.torch.state_dict(run.task, models[0])
    module = Foreign(256).eval()
    module.load_state_dict(state)
    x, y = next(run.task.samples.test())
    loss = torch.nn.functional.cross_entropy(module(x).logits.flatten(0, 1), y.flatten()).item()
    assert run.task.evaluate(models[:1])["loss"][0] == pytest.approx(loss, rel=1e-5 if precision is None else 1e-2)
    with pytest.raises(ConfigError, match=r"does not take samples .*index out of range"):
        bm.problem("torch", module=lambda: Foreign(255), **problem).bind(workers=2)  # one embedding too few


def test_flipped_tokens(book: Path) -> None:
    made = bm.problem("torch", module=SMALL, dataset={"text": str(book), "context": 12}, batch=3)
    poisoned: Any = made.bind(workers=2, liars=1)
    x, y = poisoned.batches(0, np.array([2]))
    np.testing.assert_array_equal(y[..., :-1], 255 - x[..., 1:])


def test_a_config_with_a_text_is_written_in_full(tmp_path: Path, book: Path) -> None:
    (tmp_path / "book.txt").write_bytes(book.read_bytes())
    problem = {"name": "torch", "module": "gpt", "dataset": {"text": "book.txt"}}
    config = resolve({"problem": problem, "network": "paper/two-castle"}, tmp_path)
    assert config["problem"]["dataset"] == {"text": str(tmp_path / "book.txt"), "context": 64, "tokenizer": "bytes"}
    assert config["problem"]["module"] == {"name": "gpt", "width": 64, "depth": 2, "heads": 4}


def test_whole_numbers_reach_an_embedding() -> None:
    def make(classes: int) -> Any:
        return torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Flatten(), torch.nn.Linear(20, classes))

    draw = np.random.default_rng(0)
    inputs, targets = draw.integers(0, 9, (60, 5)), draw.integers(0, 3, 60)
    for data in ((inputs, targets), (torch.from_numpy(inputs), torch.from_numpy(targets))):
        made: Any = bm.problem("torch", module=make, dataset=data, batch=4).bind(workers=3)
        x, _ = made.batches(0, np.arange(3))
        assert x.dtype == torch.int64 and made.classes == 3
        assert np.isfinite(made.gradients(made.initial(), 0)).all()
        run = bm.prepare(problem={"name": "torch", "module": make, "dataset": data, "batch": 4}, network=RING, rounds=1)
        assert run.run().status == "finished" and run.config["problem"]["dataset"].endswith("[60]")


def test_mistakes_are_named(book: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownOption, match="a text has no option 'contxt': did you mean 'context'"):
        bm.problem("torch", dataset={"text": str(book), "contxt": 3})
    with pytest.raises(ConfigError, match="tokenizer must be bytes or"):
        bm.problem("torch", dataset={"text": str(book), "tokenizer": "bpe"})
    with pytest.raises(DataError, match=r"cannot read the text .*none\.txt"):
        bm.problem("torch", module=SMALL, dataset={"text": str(tmp_path / "none.txt")}).bind(workers=2)
    (tmp_path / "short.txt").write_text("a few")
    with pytest.raises(DataError, match="5 tokens, which is less than two windows"):
        bm.problem("torch", module=SMALL, dataset={"text": str(tmp_path / "short.txt")}).bind(workers=2)
    with pytest.raises(ConfigError, match="module gpt needs token data"):
        bm.problem("torch", module="gpt", dataset="mnist").bind(workers=2)
    with pytest.raises(DataError, match="60 inputs and 59 targets"):
        bm.problem("torch", module="mlp", dataset=(np.zeros((60, 3)), np.zeros(59, int))).bind(workers=2)
    with pytest.raises(ConfigError, match="puts pixels on images"):
        bm.simulate(
            problem={"name": "torch", "module": SMALL, "dataset": {"text": str(book)}},
            network="paper/two-castle",
            attack="backdoor",
            rounds=1,
        )
