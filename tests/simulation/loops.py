"""Rounds as plain loops written from the definition, with the oracles of the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import byzmesh as bm
from byzmesh.attacks.scene import make_scene
from byzmesh.networks.processes import Meetings
from tests.rules.oracles import ORACLES


def weights_of(heard: dict[int, list[int]], worker: int, scheme: str) -> list[float]:
    """Own weight, then one per message, by the formula of the scheme with the degrees of the round."""
    mine = len(heard[worker])
    if scheme == "equal":
        shares = [1.0 / (1 + mine)] * mine
    elif scheme == "max-degree":
        shares = [1.0 / (1 + max(map(len, heard.values())))] * mine
    else:
        shares = [1.0 / (1 + max(mine, len(heard[other]))) for other in heard[worker]]
        shares = [share / 2 for share in shares] if scheme == "lazy" else shares
    return [1.0 - sum(shares), *shares]


def plain_loops(given: dict[str, Any], rounds: int) -> np.ndarray:
    """Algorithm 1, worker by worker and message by message, on the links of each round if there is a process."""
    simulation = bm.prepare(**given)
    task, network, rule, attack = simulation.task, simulation.network, simulation.rule, simulation.attack
    name, options, scheme = rule.name, dict(rule.options), network.weights
    process = bm.process(given.get("process"))
    meetings = Meetings(process, network.links, network.lies, simulation.seed)
    row_of = {int(worker): row for row, worker in enumerate(network.honest)}
    models = [task.initial()[row].copy() for row in range(len(row_of))]
    memory = [np.zeros_like(model) for model in models]
    buffer = [np.zeros_like(model) for model in models]
    past: list[np.ndarray] = []
    state: Any = None
    for k in range(rounds):
        meeting, step, decay = meetings.at(k), simulation.schedule(k), simulation.local.decay
        heard: dict[int, list[int]] = {node: meeting.links.of(node).tolist() for node in range(network.n)}
        ages = iter([0] * len(meeting.links.sender) if meeting.age is None else meeting.age.tolist())
        age = {(node, other): next(ages) for node in range(network.n) for other in heard[node]}
        half = []
        for row, model in enumerate(models):
            if not meeting.active[network.honest[row]]:
                half.append(model)
                continue
            gradient = task.gradients(model[None], k, rows=np.array([row]))[0]
            if simulation.local.momentum == "heavy-ball":
                gradient = buffer[row] = simulation.local.beta * buffer[row] + gradient
            half.append((1.0 - step * decay) * model - step * gradient)
        sent = np.array(models if rule.sends == "start" else half)
        past = [sent, *past]
        links = [(node, other) for node in range(network.n) for other in heard[node]]
        tables = []
        for kind in (scheme, "metropolis-hastings"):
            shares = {node: weights_of(heard, node, kind) for node in heard}
            each = [shares[node][1 + heard[node].index(other)] for node, other in links]
            tables.append((np.array(each), np.array([shares[node][0] for node in heard])))
        receiver, sender = np.array(links, np.int64).reshape(-1, 2).T
        scene = make_scene(
            receiver,
            sender,
            network.honest,
            network.byzantine,
            mixing=tables[0],
            metropolis=tables[1],
            fiedler=simulation.scene.fiedler,
        )
        scene = replace(scene, wrong_model=simulation.wrong_model, gradient=simulation.task.full_gradient)
        forged: Any = None
        if k == 0 or (process and not isinstance(state, np.ndarray | int | float)):
            state = attack.init(scene)
        view = bm.View(models=sent, scene=scene, round=bm.Round(number=k, seed=simulation.seed))
        if len(scene.liar):
            forged, state = attack.forge(view, state)
        else:
            state = attack.observe(view, state)
        fresh = []
        for worker, row in row_of.items():
            if not meeting.active[worker]:
                fresh.append(models[row])
                continue
            received, weights = [], weights_of(heard, worker, scheme)
            for other in heard[worker]:
                old = past[age[worker, other]]
                received.append(old[row_of[other]] if other in row_of else forged[other, worker])
            lying = sum(other not in row_of for other in heard[worker])
            f = min(lying if simulation.f == "exact" else simulation.f, len(received))
            if f > rule.largest_f(len(received)) or not received:
                if name not in ("CC", "ByRDiE"):
                    fresh.append(half[row])
                    continue
                received, weights, f = [], [1.0], 0
            extra: dict[str, Any] = {}
            if name == "DRSA":
                extra = {"step": step} | ({"previous": models[row]} if options["at"] == "start" else {})
            if name == "Leash":
                extra = {"step": step, "number": k}
            if name == "SimRew":
                extra = {"previous": models[row]}
            if name == "CC" and options["centre"] == "memory":
                extra = {"memory": memory[row]}
            if name == "BALANCE":
                extra = {"progress": k / rounds}
            if name == "ByRDiE":
                extra = {"previous": models[row], "number": k}
            if name in ("UBAR", "Zeno"):
                extra = {"loss": lambda v, row=row: float(task.losses(v[None, None], k, np.array([row]))[0, 0])}
            fresh.append(
                ORACLES[name](
                    half[row], np.array(received).reshape(-1, len(half[row])), np.array(weights), f, **extra, **options
                )
            )
        memory = [new if meeting.active[network.honest[row]] else memory[row] for row, new in enumerate(fresh)]
        models = fresh
    return np.array(models)
