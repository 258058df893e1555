"""The scripts of examples/ in short versions, all at once."""

from __future__ import annotations

import re
from pathlib import Path

from byzmesh.peers import keygen
from tests.examples.scripts import run_together
from tests.peers.networks import port_block

HARDEN, LOOP, ADAMW = "harden_my_script.py", "peer_training_loop.py", "harden_adamw.py"


def test_averaging_fails_beside_a_liar_and_hardened_scripts_learn_in_one_process_and_as_peers(tmp_path: Path) -> None:
    keys, port, rounds = tmp_path / "keys", port_block(4), ["--rounds", 30]
    keygen(keys, 4)
    peers = [[LOOP, peer, keys, port, 40] for peer in range(4)]
    one, eight, text, *four = run_together(
        tmp_path, [HARDEN, *rounds], [HARDEN, *rounds, "--peers"], [ADAMW, "--rounds", 3], *peers
    )
    for told in (one, eight):
        found = re.fullmatch(r"averaging (\d+\.\d)%, hardened (\d+\.\d)%\n", told)
        assert found, told
        averaging, hardened = map(float, found.groups())
        assert averaging < 40 and hardened > 60
    assert all(told.startswith(f"peer {peer}: round ") for peer, told in enumerate(four))
    found = re.fullmatch(r"perplexity after 3 rounds: averaging ([\d.]+), hardened ([\d.]+)\n", text)
    assert found and float(found[1]) > 100 > 60 > float(found[2]), text
