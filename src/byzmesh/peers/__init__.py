"""Peers: the algorithm between real machines, without a server and without a clock.

wire          bytes <-> message                       identity             key pairs
transport     what a peer needs of the outside        sockets, virtual     TCP; a whole network in one process
doorkeeper    who may connect                         certificates         keys in the form that TLS wants
handshake     both ends prove their keys              frames               encrypted messages on an open link
links         what is done with what comes in         budget               how much a neighbour may send
rounds        which messages count, how long to wait  peer                 one exchange after another (`Peer`)
network_file  what all peers agree on                 plan                 one from a simulator's config
signing       an operator's signature                 epochs, membership   which file is in force, and how it spreads
changes       the next file of a run                  join                 a new peer in a run under way
node          a peer that trains                      logs, metrics_page   logs, /metrics and /health
drill/        all peers on one machine, some lying, some failing
"""

from byzmesh.peers.identity import Keys, keygen, load_keys, new_keys
from byzmesh.peers.patience import Patience
from byzmesh.peers.peer import Peer
from byzmesh.peers.transport import Remote

__all__ = ["Keys", "Patience", "Peer", "Remote", "keygen", "load_keys", "new_keys"]
