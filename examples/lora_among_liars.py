"""Fine-tuning with adapters among liars: a small GPT learns one text, then eight workers adapt it to another.

    python examples/lora_among_liars.py

Two of the eight flip the sign of what was learned in each round. The base is frozen; only the adapters travel, 2%
of the model. Perplexity is that of the second text's last tenth, the mean over the honest workers.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import safetensors.torch

import byzmesh as bm

TEXTS = Path(__file__).parent / "texts"
GPT = {"name": "gpt", "width": 32, "depth": 2, "heads": 4}


def problem(text: str, **more: Any) -> dict[str, Any]:
    data = {"text": str(TEXTS / text), "context": 32}
    return {"name": "torch", "module": GPT, "dataset": data, "batch": 4, "test_samples": 100, **more}


def learn_base(path: Path, rounds: int) -> None:
    """Four honest workers learn the first text; the mean of their models is the base."""
    training: dict[str, Any] = {
        "step": 0.003,
        "local": {"optimizer": "AdamW", "steps": 20},
        "rounds": rounds,
        "evaluate_every": rounds,
    }
    run = bm.prepare(problem=problem("genesis.txt"), network={"name": "complete", "n": 4}, rule="mean", **training)
    models = run.run().models
    safetensors.torch.save_file(
        {name: value.clone() for name, value in bm.torch.state_dict(run.task, models.mean(axis=0)).items()}, path
    )


def fine_tune(base: Path, rule: str, rounds: int) -> bm.Run:
    """Eight workers, two of which lie, adapt the base to the second text."""
    return bm.simulate(
        problem=problem(
            "constitution.txt", base=str(base), adapter={"name": "lora", "rank": 2, "layers": "*.attend.*"}
        ),
        network={"name": "complete", "n": 8, "byzantine": [6, 7]},
        rule=rule,
        attack={"name": "reflection", "reference": "round", "scale": 4.0},
        step=0.01,
        local={"optimizer": "AdamW", "steps": 10},
        rounds=rounds,
        evaluate_every=rounds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-rounds", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base.safetensors"
        learn_base(base, given.base_rounds)
        for rule in ("mean", "IOS"):
            run = fine_tune(base, rule, given.rounds)
            before, after = run.metrics["perplexity"][[0, -1]]
            print(
                f"{rule}: perplexity {before:.1f} before, {after:.1f} after; {run.models.shape[1]} numbers per message"
            )


if __name__ == "__main__":
    main()
