"""A plain decentralized PyTorch script, and the one line that hardens it.

Eight workers on a ring, each linked to the next two on either side, train a small network on MNIST: a step of SGD on
their own data, then the average with the four neighbours' parameters. Worker 3 lies: it sends noise.

    python examples/harden_my_script.py            all workers in this process
    python examples/harden_my_script.py --peers    a process for each worker; they talk over encrypted sockets
"""

import argparse
import socket
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch
from torch import nn

import byzmesh as bm
from byzmesh.peers import Peer, new_keys
from byzmesh.problems.data.datasets import dataset

WORKERS, LIAR = 8, 3
NEIGHBOURS = {i: sorted((i + gap) % WORKERS for gap in (-2, -1, 1, 2)) for i in range(WORKERS)}


class Worker:
    """One worker of your script: its part of the data, its module, its optimiser."""

    def __init__(self, me):
        digits = dataset("mnist")
        self.x, self.y = torch.from_numpy(digits.train_x[me::WORKERS]), torch.from_numpy(digits.train_y[me::WORKERS])
        self.test_x, self.test_y = torch.from_numpy(digits.test_x), torch.from_numpy(digits.test_y)
        torch.manual_seed(0)  # all start from the same parameters
        self.module = nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
        self.optimiser = torch.optim.SGD(self.module.parameters(), lr=0.3)
        self.draw = torch.Generator().manual_seed(me)

    def step(self):
        batch = torch.randint(len(self.x), (32,), generator=self.draw)
        self.optimiser.zero_grad()
        nn.functional.cross_entropy(self.module(self.x[batch] / 255), self.y[batch].long()).backward()
        self.optimiser.step()

    def accuracy(self):
        with torch.no_grad():
            return (self.module(self.test_x / 255).argmax(1) == self.test_y).float().mean().item()


def average(module, received):
    """What the plain script does."""
    own = module.state_dict()
    module.load_state_dict({name: sum([own[name], *(r[name] for r in received)]) / (1 + len(received)) for name in own})


def harden(module, received):
    """What the hardened script does instead: at most one of the four neighbours lies."""
    bm.torch.aggregate("ios", module, received, f=1)


def train(mix, rounds):
    """Mean accuracy of the honest workers."""
    workers = [Worker(me) for me in range(WORKERS)]
    for _ in range(rounds):
        for worker in workers:
            worker.step()
        sent = [{name: p.clone() for name, p in worker.module.state_dict().items()} for worker in workers]
        sent[LIAR] = {name: 10 * torch.randn_like(p) for name, p in sent[LIAR].items()}
        for me, worker in enumerate(workers):
            mix(worker.module, [sent[neighbour] for neighbour in NEIGHBOURS[me]])
    return mean_of_honest([worker.accuracy() for worker in workers])


def mean_of_honest(values):
    return (sum(values) - values[LIAR]) / (WORKERS - 1)


def be_peer(rule, rounds, keys, addresses, me):
    """The same loop as a separate process: `exchange` sends, waits, and aggregates with the rule."""
    torch.set_num_threads(1)
    worker = Worker(me)
    neighbours = {i: (addresses[i], keys[i].public) for i in NEIGHBOURS[me]}
    vector = bm.torch.flatten(worker.module)
    with Peer(vector, neighbours, rule, me=me, address=addresses[me], keys=keys[me], f=1) as peer:
        for _ in range(rounds):
            worker.step()
            vector = bm.torch.flatten(worker.module)
            if me == LIAR:
                vector = 10 * torch.randn_like(vector)
            bm.torch.load(worker.module, peer.exchange(vector))
    return worker.accuracy()


def train_peers(rule, rounds, pool):
    """Mean accuracy of the honest peers on loopback."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(WORKERS)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]  # free ports
    for s in sockets:
        s.close()
    job = partial(be_peer, rule, rounds, [new_keys() for _ in range(WORKERS)], addresses)
    return mean_of_honest(list(pool.map(job, range(WORKERS))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", action="store_true", help="a process for each worker")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peers:
        with ProcessPoolExecutor(WORKERS) as pool:
            before, after = (train_peers(rule, options.rounds, pool) for rule in ("weimean", "ios"))
    else:
        before, after = (train(mix, options.rounds) for mix in (average, harden))
    print(f"averaging {before:.1%}, hardened {after:.1%}")
