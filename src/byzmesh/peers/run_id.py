"""Which network files belong to one run: a hash of what all peers must agree on, in every message."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from byzmesh.peers.channel_key import agreed_channel
from byzmesh.renamed import as_stored

if TYPE_CHECKING:
    from byzmesh.peers.network_file import NetworkFile

_NOT_AGREED = {
    *("name", "peers", "rounds", "evaluate_every", "measure", "checkpoint_seconds", "timeouts"),
    *("threads", "labels", "plugins", "open_links"),
}
"""Keys in which the files of two peers of a run may differ; in `peers`, everything except public keys and shares."""
_OF_AN_EPOCH = {"epoch", "from_round", "signature", "topology", "edges", "weights", "f"}
"""Keys in which two signed files of a run may differ, besides; and all of `peers`."""


def run_id(file: NetworkFile) -> int:
    """The hash: not of addresses, timeouts, or the number of rounds; nor, if an operator signs, of what an epoch may
    change."""
    left_out = _NOT_AGREED | (_OF_AN_EPOCH if file.operator else {"epoch", "from_round", "operator", "signature"})
    agreed = as_stored(file.model_dump(mode="json", exclude=left_out))
    for key in ("nonce", "process", "directed", "channel"):
        if not agreed.get(key):
            agreed.pop(key, None)  # as before there was such a key
    agreed = agreed_channel(agreed)
    if file.operator:
        agreed["shares"] = file.parts
    else:
        agreed["peers"] = {entry.id: [entry.public_key, entry.share] for entry in file.peers}
    text = json.dumps(agreed, sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def named_run(run: int, name: str) -> int:
    """The hash of a run of the same files that the operator calls by another name; without a name, the run itself.

    >>> named_run(7, ""), named_run(7, "second") == named_run(7, "third")
    (7, False)
    """
    text = f"{run} {name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") if name else run
