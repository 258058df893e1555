"""Peers: the algorithm between real machines, without a server and without a clock.

wire.py       bytes <-> message                      identity.py   key pairs
transport.py  sockets, authentication, caps          budget.py     how much a neighbour may send
rounds.py     which messages count, how long to wait  peer.py      one exchange after another (`Peer`)
netfile.py    the network file                       plan.py       one from a simulator's config
node.py       a peer that trains                     logs.py, page.py   logs, /metrics and /health
drill.py, nursery.py, liars.py, chaos.py, launch.py  all peers on one machine, some lying, some failing
"""

from byzmesh.peers.identity import Keys, keygen, load_keys, new_keys
from byzmesh.peers.peer import Peer
from byzmesh.peers.rounds import Patience
from byzmesh.peers.transport import Remote

__all__ = ["Keys", "Patience", "Peer", "Remote", "keygen", "load_keys", "new_keys"]
