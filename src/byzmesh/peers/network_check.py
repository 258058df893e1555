"""Everything in a network file that could stop a peer later, checked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.peers.channel_key import check_channel
from byzmesh.peers.entries import check_peers
from byzmesh.rules.aggregate import check_feasible
from byzmesh.training.variance import not_sampled

if TYPE_CHECKING:
    from byzmesh.peers.network_file import NetworkFile


def check_network(file: NetworkFile) -> None:
    """`ConfigError` that names the key, the bound and the value."""
    check_peers(file.peers)
    ids = file.ids
    for peer in ids:
        if file.share(peer) >= file.parts:
            raise ConfigError(
                f"network file: share of peer {peer} must be below shares = {file.parts}, got {file.share(peer)}"
            )
    if (file.epoch or file.from_round) and not file.operator:
        raise ConfigError("network file: epoch and from_round need an operator; sign it with byzmesh peers sign")
    if file.operator and file.meetings is not None:
        raise ConfigError("network file: process and directed exclude an operator; leave one of them out")
    if file.from_round >= file.rounds:
        raise ConfigError(
            f"network file: from_round must be below rounds = {file.rounds}, got {file.from_round}; it would "
            "never be in force"
        )
    check_channel(file.channel, file.meetings is not None, bool(file.operator))
    if isinstance(file.f, dict) and sorted(file.f) != ids:
        raise ConfigError("network file: f must be one number or name every peer")
    bounds = np.array([file.bound(peer) for peer in ids], np.int64)
    if bounds.min() < 0:
        raise ConfigError(f"network file: f must be at least 0, got {bounds.min()}")
    degree = file.network.degree if file.meetings is None else file.meetings.degree
    if degree is not None and file.meetings is None and (len(ids) > 1 or file.epoch):
        alone = [str(peer) for peer, count in zip(ids, degree.tolist()) if count == 0]
        if alone:
            raise ConfigError(
                f"network file: no neighbours are left for peer {', '.join(alone)}, which would train alone; add "
                "links, or remove it as well"
            )
    if degree is not None:
        check_feasible(file.made_rule, bounds, degree, np.array(ids))
    if file.made_local.variance != "none" and file.made_problem.sampled is False:
        raise not_sampled(file.made_local.variance)
    _ = file.made_metrics, file.patience, file.schedule, file.made_local
