"""A lie that is planned for Leash: the whole run is simulated, and its end differentiated by every lie.

    python reports/audit/plan.py COLUMN [--momentum] [--seeds 5] [--start common]

Liars know the honest workers' data (400 samples of each are used), the graph, the rule and the start, not the batches.
A lie far away moves its victim by b tau along a direction u, so a plan is a direction per round and victim. It begins
with the direction up the loss at the average model. Two sweeps improve it: forward through all rounds (local steps
with momentum, clipping, the median of the first rounds), then backward through their derivatives, from a smooth error
of the final models; each u is turned towards the direction that raises this error most.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import search

from byzmesh.attacks.base import Attack, Forged, View
from byzmesh.config.schema import resolve
from byzmesh.problems.data.datasets import dataset
from byzmesh.sweeps.build import build

ROUNDS, SAMPLES, BATCH, JUDGED = search.ROUNDS, 400, 24, 700
WIDTH = 3.0
"""Of the smooth error: the sigmoid of the margin divided by this."""
FAR = 1e4
TINY = 1e-12


def unit(rows: Any) -> Any:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-30)


class Model:
    """The honest workers as liars know them: x (N, D) models, v (N, D) momentum."""

    def __init__(self, config: Any) -> None:
        simulation = build(config)
        task, network = simulation.task, simulation.network
        self.N, self.first = len(network.honest), task.initial()[: len(network.honest)].astype(np.float32)
        drawn = [np.random.default_rng(n).permutation(task.split.share(n))[:SAMPLES] for n in range(self.N)]
        drawn = [ids[: min(map(len, drawn))] for ids in drawn]
        data = dataset("mnist", None)
        pixels = np.stack([data.scale * data.train_x[ids].astype(np.float32) + data.offset for ids in drawn])
        self.inputs = np.concatenate([pixels, np.ones((*pixels.shape[:2], 1), np.float32)], axis=2)
        self.labels = np.array([task.target[ids] for ids in drawn], np.int64)
        row_of = {int(worker): row for row, worker in enumerate(network.honest)}
        self.weights, self.lying = np.zeros((self.N, self.N), np.float32), np.zeros(self.N, np.float32)
        for row, (senders, weights) in enumerate(zip(network.layout.sender, network.layout.weight, strict=True)):
            for sender, weight in zip(senders[1:].tolist(), weights[1:].tolist(), strict=True):
                if sender in row_of:
                    self.weights[row, row_of[sender]] = weight
                elif sender >= 0:
                    self.lying[row] += weight
        local = config["local"]
        self.beta, self.decay = local["beta"] if local["momentum"] != "none" else 0.0, local["decay"]
        self.c, self.agree = 2.0, 30  # the defaults of Leash
        picked = np.random.default_rng(6).permutation(self.labels.size)[:JUDGED]
        self.judged = self.inputs.reshape(-1, self.inputs.shape[2])[picked], self.labels.reshape(-1)[picked]

    def alpha(self, k: int) -> float:
        return 0.9 / np.sqrt(k + 1)

    def batch(self, k: int) -> tuple[Any, Any]:
        left = k * BATCH % (self.inputs.shape[1] - BATCH + 1)
        return self.inputs[:, left : left + BATCH], self.labels[:, left : left + BATCH]

    def scores(self, inputs: Any, x: Any) -> Any:
        return np.matmul(inputs, x.reshape(*x.shape[:-1], inputs.shape[-1], 10))

    def gradient(self, x: Any, k: int) -> tuple[Any, Any]:
        """Gradients (N, D), and the probabilities behind them."""
        inputs, labels = self.batch(k)
        scores = self.scores(inputs, x)
        likely = np.exp(scores - scores.max(axis=2, keepdims=True))
        likely /= likely.sum(axis=2, keepdims=True)
        slope = (likely - np.eye(10, dtype=np.float32)[labels]) / BATCH
        return np.matmul(inputs.transpose(0, 2, 1), slope).reshape(self.N, -1), likely

    def curvature(self, likely: Any, way: Any, k: int) -> Any:
        """(N, D) the Hessians of the losses times `way`."""
        inputs, _ = self.batch(k)
        change = self.scores(inputs, way)
        change = likely * (change - (likely * change).sum(axis=2, keepdims=True)) / BATCH
        return np.matmul(inputs.transpose(0, 2, 1), change).reshape(self.N, -1)

    def clipping(self, half: Any, k: int) -> tuple[Any, ...]:
        """Distances, tau (N,), whose distance tau is (-1: nobody's), shares (N, N), and which are clipped."""
        gram = half @ half.T
        square = np.diag(gram)
        apart = np.sqrt(np.maximum(square[:, None] + square - 2 * gram, 0))
        tau, middle = np.full(self.N, self.c * self.alpha(k), np.float32), np.full(self.N, -1)
        for n in range(self.N) if k < self.agree else ():
            near = sorted((apart[n, m], m) for m in np.flatnonzero(self.weights[n]))
            total, heard = self.weights[n].sum() + self.lying[n], 0.0
            for distance, m in near:  # lies are farther away than everybody
                heard += self.weights[n, m]
                if heard >= 0.5 * total * (1 - TINY):
                    if distance > tau[n]:
                        tau[n], middle[n] = distance, m
                    break
        share = self.weights * np.minimum(1, tau[:, None] / np.maximum(apart, TINY))
        return apart, tau, middle, share, (apart > tau[:, None]) & (self.weights > 0)

    def forward(self, plan: Any) -> tuple[Any, list[Any]]:
        """The final models under a plan (ROUNDS, N, D), and what the derivatives need."""
        x, v, trace = self.first, np.zeros_like(self.first), []
        for k in range(ROUNDS):
            gradient, likely = self.gradient(x, k)
            v = self.beta * v + (1 - self.beta) * gradient
            half = ((1 - self.decay * self.alpha(k)) * x - self.alpha(k) * v).astype(np.float32)
            centred = half - half.mean(axis=0)
            apart, tau, middle, share, clipped = self.clipping(centred, k)
            if plan[k] is None:
                plan[k] = self.uphill(half) if k % 10 == 0 else plan[k - 1]
            push = (self.lying * tau)[:, None] * plan[k]
            x = (half + share @ half - share.sum(axis=1)[:, None] * half + push).astype(np.float32)
            trace.append((likely, centred, apart, tau, middle, share, clipped))
        return x, trace

    def uphill(self, models: Any) -> Any:
        """(N, D) the direction in which the loss of the average model rises, for everybody."""
        inputs, labels = self.judged
        scores = self.scores(inputs, models.mean(axis=0))
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        slope = inputs.T @ (likely - np.eye(10)[labels])
        return np.repeat(unit(slope.reshape(1, -1)), self.N, axis=0).astype(np.float32)

    def error(self, x: Any) -> tuple[float, Any]:
        """The smooth error of the models, and its gradient (N, D)."""
        inputs, labels = self.judged
        places, total, slopes = np.arange(len(labels)), 0.0, np.empty_like(x)
        for n, model in enumerate(x):
            scores = self.scores(inputs, model)
            right = scores[places, labels]
            scores[places, labels] = -np.inf
            rival = scores.argmax(axis=1)
            wrong = 1 / (1 + np.exp(-np.clip((scores[places, rival] - right) / WIDTH, -50, 50)))
            change = np.zeros_like(scores)
            change[places, rival] = wrong * (1 - wrong)
            change[places, labels] = -wrong * (1 - wrong)
            slopes[n], total = (inputs.T @ change).reshape(-1), total + wrong.mean()
        return total / self.N, slopes

    def sweep(self, plan: list[Any], step: float) -> float:
        """Turn the plan, in place, towards what raises the error at the end most; the error before."""
        x, trace = self.forward(plan)
        error, p = self.error(x)
        r = np.zeros_like(p)  # derivatives by the momentum of a round; p by the models after it, q by its half steps
        for k in range(ROUNDS - 1, -1, -1):
            likely, half, apart, tau, middle, share, clipped = trace[k]
            q = p - share.sum(axis=1)[:, None] * p + share.T @ p
            along = p @ half.T
            along -= np.diag(along)[:, None]  # (half_m - half_n) . p_n
            turn = np.where(clipped, share * along / np.maximum(apart**2, TINY), 0).astype(np.float32)
            q += turn @ half - turn.sum(axis=1)[:, None] * half + turn.T @ half - turn.sum(axis=0)[:, None] * half
            best = unit(p)
            stretched = np.where(clipped, self.weights * along / np.maximum(apart, TINY), 0).sum(axis=1)
            stretched += self.lying * (p * best).sum(axis=1)
            for n in np.flatnonzero(middle >= 0):
                e = stretched[n] * (half[middle[n]] - half[n]) / tau[n]
                q[middle[n]] += e
                q[n] -= e
            plan[k] = unit((1 - step) * plan[k] + step * best)
            r = self.beta * r - self.alpha(k) * q
            p = (1 - self.decay * self.alpha(k)) * q + (1 - self.beta) * self.curvature(likely, r, k)
            scale = np.linalg.norm(p) or 1.0
            p, r = (p / scale).astype(np.float32), r / scale
        return error


def planned(model: Model) -> Attack:
    """The attack that tells every victim its own model and a long way along its part of the plan."""
    plan: list[Any] = [None] * ROUNDS
    for step in (1.0, 0.5):
        model.sweep(plan, step)

    def forge(view: View, state: Any) -> tuple[Forged, Any]:
        scene, models = view.scene, view.models
        rows = models[scene.victims] + FAR * plan[view.round.number][scene.victims]
        return Forged(scene.liar, scene.victim, scene.place, models, rows=rows.astype(models.dtype)), state

    return Attack("planned", forge)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("column")
    parser.add_argument("--momentum", action="store_true")
    parser.add_argument("--seeds", type=int, default=search.SEEDS)
    parser.add_argument("--start", default="common")
    told = parser.parse_args()
    row = "Leash" + search.MOMENTUM * told.momentum
    written, rule = search.config_of(told.column, row)
    for seed in range(search.FRESH, search.FRESH + told.seeds):
        problem = {**written["problem"], "init": told.start}
        more = {"rule": rule, "attack": "ascent", "seed": seed, "evaluate_every": ROUNDS, "problem": problem}
        config = resolve({**written, **more}, search.HERE)
        accuracy = build(config, attack=planned(Model(config))).run().final("accuracy")
        print(f'{told.column},"{row}",4,plan,{told.start},{seed},{ROUNDS},{100 * float(accuracy):.4f}', flush=True)


if __name__ == "__main__":
    main()
