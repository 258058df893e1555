"""Compile first, connect then: nobody waits for a peer that compiles, and no queue fills meanwhile."""

from __future__ import annotations

import numpy as np

from byzmesh.peers.aggregation import Aggregation
from byzmesh.peers.links import LARGEST
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.tally import Tally
from byzmesh.peers.wire import Format, peak
from byzmesh.problems import Task
from byzmesh.round import Round
from byzmesh.rules.inbox import make_inbox
from byzmesh.rules.interop import to_host
from byzmesh.training.local_round import LocalRound


def local_round(file: NetworkFile, task: Task, row: int) -> LocalRound:
    """The local part of a round for the peer of this row."""
    return LocalRound(task, np.array([row], np.int64), file.schedule, file.made_local, file.seed)


def warm(file: NetworkFile, task: Task, row: int) -> None:
    """Compile or load every kernel that a peer of this network uses."""
    model = to_host(task.initial())[row : row + 1].copy()
    local = local_round(file, task, row)
    local.start(model)
    half = local.half_steps(model, 0)
    task.evaluate(model)
    form = Format(file.run, task.dimension, file.dtype, file.channel, seed=file.seed)
    vector = form.decode(form.encode(half[0], 0, 0), 0, LARGEST * max(1.0, peak(half[0]))).vector
    count = int(file.network.degree[0])
    weight, f = np.full((1, count + 1), 1.0 / (count + 1)), np.array([file.bound(file.ids[0])])
    messages, state = np.repeat(vector[None], count, axis=0), file.made_rule.init(half)
    inbox = make_inbox(
        file.made_rule,
        half,
        weight=weight,
        f=f,
        receiver=np.zeros(1, np.int64),
        messages=messages,
        previous=model,
        loss=local.losses(0),
    )
    file.made_rule.apply(inbox, state)
    came, aggregation = np.ones(count, bool), Aggregation(file.made_rule, 0)
    outcome, _ = aggregation.apply(
        half[0],
        messages,
        came,
        state,
        weight=weight,
        f=f,
        round=Round(),
        peak=1.0,
        previous=model[0],
        loss=local.losses(0),
    )
    Tally(range(count)).count(outcome, came)
