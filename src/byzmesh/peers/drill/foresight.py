"""Lets liars predict what their victims would make of their messages.

Rule, weights and bounds are in the network file, and the liars have the messages that they jointly received: enough to
apply the rule for their victims. Neighbours of a victim that no liar hears count as absent, and a rule's memory as new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Scene
from byzmesh.errors import PeerError
from byzmesh.peers.network_file import NetworkFile
from byzmesh.round import Round
from byzmesh.rules.inbox import make_inbox
from byzmesh.types import Array

Respond = Callable[[Any], Any]


def foresee(file: NetworkFile, scene: Scene) -> Callable[[Array, Round], Respond]:
    """(models (N, D) heard in a round, round) -> `View.respond` for them."""
    rule = file.made_rule
    if rule.needs_loss:
        raise PeerError(f"rule {rule.name} uses data that liars do not have; choose an attack without foresight")
    place = {int(peer): row for row, peer in enumerate(scene.honest)}
    place_of_pair = {pair: len(place) + f for f, pair in enumerate(zip(scene.liar.tolist(), scene.victim.tolist()))}
    degree = file.network.degree[scene.honest]
    index = np.zeros((len(place), 1 + int(degree.max())), np.int64)
    weight, present = np.zeros(index.shape), np.zeros(index.shape, bool)
    for peer, row in place.items():
        weight[row, 0] = file.network.own_weight[peer]
        weight[row, 1 : 1 + degree[row]] = file.network.neighbour_weights(peer)
        for slot, sender in enumerate([peer, *file.network.neighbours(peer).tolist()]):
            found = place.get(sender, place_of_pair.get((sender, peer)))
            present[row, slot] = found is not None
            index[row, slot] = found or 0
    bound = np.array([file.bound(file.ids[node]) for node in place], np.int64)
    lying = index >= len(place)
    shared = index.copy()
    shared[lying] = len(place) + scene.place[index[lying] - len(place)]

    def of_round(models: Array, round: Round) -> Respond:
        def respond(messages: Any) -> Any:
            inbox = make_inbox(
                rule,
                models,
                weight=weight,
                f=bound,
                receiver=scene.honest,
                messages=messages,
                index=shared if len(messages) == len(scene.victims) else index,
                present=present,
                round=round,
                previous=models,
            )
            return rule.apply(inbox, rule.init(models))[0].models

        return respond

    return of_round
