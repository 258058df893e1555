"""A language model trained with AdamW by six workers, and the lines that harden it, in the simulator and between peers.

The script has a model, an optimizer and batches of its own. Every worker makes ten steps on its part of a text, then
all average their parameters. Worker 5 lies: it sends parameters with the sign changed, four times as large.

    python examples/harden_adamw.py            the simulator: what averaging and a robust rule would do
    python examples/harden_adamw.py --peers    a process for each worker; they talk over encrypted sockets
"""

import argparse
import math
import socket
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch
from torch import nn

import byzmesh as bm
from byzmesh.peers import Peer, new_keys

TEXT = Path(__file__).parent / "texts" / "genesis.txt"
WORKERS, LIAR, STEPS, CONTEXT = 6, 5, 10, 32


class Model(nn.Module):
    """Yours: bytes (B, T) in, scores of the next byte (B, T, 256) out, with the embedding's weights at both ends."""

    def __init__(self):
        super().__init__()
        self.embedding, self.memory = nn.Embedding(256, 48), nn.GRU(48, 48, batch_first=True)
        self.last = nn.Linear(48, 256)
        self.last.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.05)

    def forward(self, tokens):
        return self.last(self.memory(self.embedding(tokens))[0])


def make_optimizer(parameters):
    """Yours too."""
    return torch.optim.AdamW(parameters, lr=0.005, betas=(0.9, 0.95), weight_decay=0.01)


# --- in the simulator: hand both over, and name a rule and an attack -------------------------------------------------


def simulate(rule, rounds):
    """The honest workers' perplexity on the last tenth of the text."""
    run = bm.simulate(
        problem={"name": "torch", "module": Model, "dataset": {"text": str(TEXT), "context": CONTEXT}, "batch": 8},
        network={"name": "complete", "n": WORKERS, "byzantine": [LIAR]},
        local={"optimizer": make_optimizer, "steps": STEPS},
        step=0.005,
        rule=rule,
        attack={"name": "sign-flipping", "scale": 4.0},
        rounds=rounds,
        evaluate_every=rounds,
    )
    return run.metrics["perplexity"][-1]


# --- between peers: your loop stays, and `exchange` replaces the average ---------------------------------------------


def be_peer(rule, rounds, keys, addresses, me):
    """Your training loop in a process of its own."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # all start from the same parameters
    model = Model()
    optimizer, draw = make_optimizer(model.parameters()), torch.Generator().manual_seed(me)
    text = torch.frombuffer(bytearray(TEXT.read_bytes()), dtype=torch.uint8).long()
    learned, tested = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    mine = learned[me * len(learned) // WORKERS : (me + 1) * len(learned) // WORKERS]

    def loss(windows):
        scores = model(windows[:, :-1])
        return nn.functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())

    neighbours = {i: (addresses[i], keys[i].public) for i in range(WORKERS) if i != me}
    with Peer(bm.torch.flatten(model), neighbours, rule, me=me, address=addresses[me], keys=keys[me], f=1) as peer:
        for _ in range(rounds):
            for _ in range(STEPS):
                starts = torch.randint(len(mine) - CONTEXT - 1, (8,), generator=draw).tolist()
                optimizer.zero_grad()
                loss(torch.stack([mine[start : start + CONTEXT + 1] for start in starts])).backward()
                optimizer.step()
            vector = bm.torch.flatten(model)
            bm.torch.load(model, peer.exchange(-4.0 * vector if me == LIAR else vector))
    with torch.no_grad():
        return math.exp(min(100.0, loss(tested[: len(tested) // 33 * 33].view(-1, 33)[:200]).item()))


def train_peers(rule, rounds, pool):
    """The honest peers' perplexity, on loopback."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]  # free ports
    for s in sockets:
        s.close()
    job = partial(be_peer, rule, rounds, [new_keys() for _ in range(WORKERS)], addresses)
    ended = list(pool.map(job, range(WORKERS)))
    return sum(ended[:LIAR]) / LIAR


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="a process for each worker")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.peers:
        with ProcessPoolExecutor(WORKERS) as pool:
            before, after = (train_peers(rule, options.rounds, pool) for rule in ("weimean", "ios"))
    else:
        before, after = (simulate(rule, options.rounds) for rule in ("weimean", "ios"))
    print(f"perplexity after {options.rounds} rounds: averaging {before:.1f}, hardened {after:.1f}")
