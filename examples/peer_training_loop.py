"""Three lines turn a PyTorch training loop into a peer of a network.

Run it once per peer, on as many machines as you like (here: four processes on one machine):

    byzmesh keygen keys --peers 4
    for i in 0 1 2 3; do python examples/peer_training_loop.py $i & done; wait
"""

import sys

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from byzmesh.peers import Peer, load_keys
from byzmesh.peers.identity import load_public

me, folder, port = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "keys", int((sys.argv[3:] or [7000])[0])
rounds = int((sys.argv[4:] or [200])[0])
public = load_public(folder)
others = {i: (f"127.0.0.1:{port + i}", key) for i, key in public.items() if i != me}

torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
truth = torch.randn(8)
torch.manual_seed(1 + me)  # every peer has its own data
x = torch.randn(256, 8)
y = (x @ truth)[:, None]
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)

keys, address = load_keys(f"{folder}/peer{me}.key"), f"127.0.0.1:{port + me}"
start = parameters_to_vector(model.parameters())
with Peer(start, others, "ios", me=me, address=address, keys=keys, f=1) as peer:  # line 1
    for _ in range(rounds):
        batch = torch.randint(len(x), (32,))
        loss = torch.nn.functional.mse_loss(model(x[batch]), y[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        mixed = peer.exchange(parameters_to_vector(model.parameters()))  # line 2
        vector_to_parameters(mixed, model.parameters())  # line 3
print(f"peer {me}: round {peer.round}, loss {loss.item():.4f}, suspects {peer.suspects}")
