"""Guards cannot be turned around: rows 1, 2, 5, 7, 8, 10 and 11 of issue 18, and cut-offs that end."""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from byzmesh.peers import audit as audits
from byzmesh.peers.audit import ASKING, HEARTBEATS, SLACK, Audit, Connection
from byzmesh.peers.budget import BURST, FIRST_CUT, Budget
from byzmesh.peers.doorkeeper import Doorkeeper
from byzmesh.peers.identity import Keys, new_keys, zeromq
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.rounds import Patience, Rounds
from byzmesh.peers.sockets import Sockets, split_address
from byzmesh.peers.transport import Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import EVERYONE, Format
from tests.peers.hostile import subscriber
from tests.peers.networks import free_ports, make_network

zmq: Any = zeromq()
KEYS = new_keys()
PATIENCE = Patience(timeout=1.0, start=2.0, start_grace=0.05)
HERE, THERE = 7000, ("10.0.0.2", 7001)


class Kernel:
    """What the audit sees of the kernel."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.links: list[Connection] = []
        self.shut: list[int] = []
        monkeypatch.setattr(audits, "connections", lambda: list(self.links))
        monkeypatch.setattr(Connection, "shut", lambda link: self.shut.append(link.handle))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def test_the_base_of_a_connection_is_what_was_delivered_before_it(kernel: Kernel) -> None:
    """Row 1: megabytes delivered between connecting and the first look are not held against a neighbour."""
    audit = Audit(HERE, {3: THERE}, queue=1000)
    megabytes = 40 << 20
    kernel.links = [Connection(5, 40001, THERE, megabytes)]
    assert audit.check({3: megabytes}, now=0.1) == []
    # a new connection: its counter starts anew, that of what was delivered does not
    kernel.links = [Connection(6, 40002, THERE, 1000)]
    assert audit.check({3: megabytes + 1000}, now=0.2) == []
    kernel.links = [Connection(6, 40002, THERE, SLACK + 3000)]
    assert audit.check({3: megabytes + 1000}, now=0.3) == [3]
    assert kernel.shut == [6]


def test_heartbeats_are_not_held_against_anybody(kernel: Kernel) -> None:
    """Row 11: a day of pings and pongs, on both kinds of connections."""
    audit = Audit(HERE, {3: THERE}, queue=1000)
    for hour in range(25):
        beats = int(3600 * hour * 2 * 60 / 2)
        assert beats <= 3600 * hour * HEARTBEATS
        kernel.links = [Connection(5, 40001, THERE, beats), Connection(6, HERE, ("10.0.0.9", 50000), beats)]
        assert audit.check({3: 0}, now=3600.0 * hour) == []
    assert beats > ASKING and kernel.shut == []
    kernel.links[1] = Connection(6, HERE, ("10.0.0.9", 50000), int(3600 * hour * HEARTBEATS) + ASKING + 1)
    assert audit.check({3: 0}, now=3600.0 * hour) == [None]


def test_too_many_connections_cost_those_that_said_least(kernel: Kernel) -> None:
    audit = Audit(HERE, {}, queue=0, most_inbound=10)
    neighbours = [Connection(i, HERE, ("10.0.0.5", 40000 + i), 700) for i in range(5)]
    strangers = [Connection(100 + i, HERE, ("10.0.0.6", 40000 + i), 64) for i in range(500)]
    kernel.links = [*strangers[:250], *neighbours, *strangers[250:]]
    assert audit.check({}, now=0.0) == []
    assert len(kernel.shut) == 495 and min(kernel.shut) >= 100


def test_a_connection_that_is_gone_harms_nobody() -> None:
    """Row 7 and friction 1: ENOTCONN between looking and shutting down."""
    first, second = socket.socketpair()
    with first, second:
        Connection(first.fileno(), HERE, THERE, 0).shut()
        assert first.send(b"?") == 1
    Connection(10**6, HERE, THERE, 0).shut()


@contextmanager
def doorkeeper(log: Callable[..., None] = no_log) -> Iterator[tuple[Doorkeeper, Callable[[], list[bytes]]]]:
    """A doorkeeper, and a function that shows it a stranger's key."""
    context = zmq.Context()
    keeper = Doorkeeper(context, {KEYS.public: 3}, log)
    door = context.socket(zmq.REQ)
    door.linger = 0
    door.connect("inproc://zeromq.zap.01")

    def knock() -> list[bytes]:
        door.send_multipart([b"1.0", b"1", b"byzmesh", b"10.0.0.9", b"", b"CURVE", bytes(32)])
        assert door.poll(60_000)
        answer: list[bytes] = door.recv_multipart()
        return answer

    try:
        yield keeper, knock
    finally:
        door.close()
        keeper.close()
        context.term()


def test_the_audit_does_not_wait_for_quiet() -> None:
    """Row 1: one handshake after another, without a pause."""
    with doorkeeper() as (keeper, knock):
        audited: list[int] = []
        keeper.audit = lambda: audited.append(keeper.refused)
        while len(audited) < 5:
            knock()
        assert audited[-1] > audited[0]


def test_nothing_ends_the_doorkeeper() -> None:
    """Row 7 and friction 1: a failing audit and a mangled request are logged, and strangers are still refused."""
    said: list[str] = []
    with doorkeeper(lambda event, **facts: said.append(event)) as (keeper, knock):

        def fail() -> None:
            raise OSError(107, "Transport endpoint is not connected")

        keeper.audit = fail
        while said.count("guard failed") < 3:
            assert knock()[2] == b"400"
        assert keeper.guarding


def sockets(ids: tuple[int, ...] = (0, 1, 2)) -> tuple[dict[int, Sockets], dict[int, Keys], dict[int, str]]:
    """Peers that are all neighbours."""
    keys = {i: new_keys() for i in ids}
    where = {i: f"127.0.0.1:{port}" for i, port in zip(ids, free_ports(len(ids)))}
    remotes = {i: Remote(where[i], keys[i].public) for i in ids}
    made = {i: Sockets(i, where[i], keys[i], {j: remotes[j] for j in ids if j != i}, 100) for i in ids[:1]}
    return made, keys, where


def until(transport: Sockets, found: Callable[[list[int]], bool]) -> list[int]:
    """The joins until a condition holds."""
    joined: list[int] = []
    for _ in range(6000):
        joined += transport.receive(0.01)[1]
        if found(joined):
            return joined
    raise AssertionError(f"waited in vain, joined: {joined}")


def test_a_join_is_who_was_authenticated_not_who_it_says() -> None:
    """Row 2: a liar subscribes under another's id."""
    made, keys, where = sockets()
    context = zmq.Context()
    try:
        ear = subscriber(context, where[0], keys[0].public, keys[2])
        ear.subscribe(struct.pack("<H", 1))
        joined = until(made[0], lambda joined: len(joined) >= 1)
        assert set(joined) == {2}
        ear.close()  # what it subscribed to ends with it, which names nobody
        ear = subscriber(context, where[0], keys[0].public, keys[1])
        assert set(until(made[0], lambda joined: 1 in joined)) <= {1, 2}
        ear.close()
    finally:
        context.destroy(linger=0)
        made[0].close(0)


def test_connect_and_reset_does_not_disarm_a_peer() -> None:
    """Row 7: 1,900 of them."""
    made, keys, where = sockets()
    context = zmq.Context()
    try:
        for _ in range(1900):
            link = socket.create_connection(split_address(where[0]))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
        ear = subscriber(context, where[0], keys[0].public, keys[1])
        assert until(made[0], bool)[0] == 1 and made[0].guarding
        ear.close()
    finally:
        context.destroy(linger=0)
        made[0].close(0)


CROWDED = """
import resource, sys
from byzmesh.peers.identity import Keys
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.transport import Remote
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
me, address, public, secret, far, other = sys.argv[1:]
transport = Sockets(0, address, Keys(public, secret), {1: Remote(far, other)}, 100)
print("ready", flush=True)
while not transport.receive(0.05)[1]:
    pass
print("joined", flush=True)
open(__file__ if "__file__" in globals() else "/dev/null").close()
transport.close(0)
"""


def test_idle_connections_up_to_the_file_limit_do_not_lock_neighbours_out() -> None:
    """Row 8: more connections than the process may have files."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 500
    keys, where = [new_keys(), new_keys()], [f"127.0.0.1:{port}" for port in free_ports(2)]
    words = ["me", where[0], keys[0].public, keys[0].secret, where[1], keys[1].public]
    process = subprocess.Popen([sys.executable, "-c", CROWDED, *words], stdout=subprocess.PIPE, text=True)
    links: list[socket.socket] = []
    context = zmq.Context()
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for _ in range(300):
            links.append(socket.create_connection(split_address(where[0]), timeout=30))
        ear = subscriber(context, where[0], keys[0].public, keys[1])
        assert process.stdout.readline() == "joined\n"
        assert process.wait(60) == 0
        ear.close()
    finally:
        process.kill()
        process.wait()
        context.destroy(linger=0)
        for link in links:
            link.close()


def test_ipv6_addresses_work() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    keys, ports = [new_keys(), new_keys()], free_ports(2)
    where = [f"[::1]:{port}" for port in ports]
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 loopback here")
    made = [Sockets(i, where[i], keys[i], {1 - i: Remote(where[1 - i], keys[1 - i].public)}, 100) for i in (0, 1)]
    try:
        assert until(made[0], bool) == [1]
    finally:
        for transport in made:
            transport.close(0)


def test_an_honest_neighbour_never_runs_out_of_budget() -> None:
    """Row 2: one message per round, and four more to a peer that reconnects in every round, in no time."""
    budget = Budget([1], now=0.0)
    assert all(budget.spend(1, round, now=0.0) for round in range(5000) for _ in range(5))
    assert sum(budget.spend(1, round=5000, now=0.0) for _ in range(5000)) <= BURST + 6


Script = Callable[[VirtualWorld, Any, Format], None]


def beside(script: Script, seconds: float, work: float = 0.01, delay: float = 0.001, **options: Any) -> dict[int, Peer]:
    """Three honest peers beside a neighbour that follows a script, for some virtual seconds."""
    peers: dict[int, Peer] = {}
    form = Format(0, 2, "float64")
    with VirtualWorld(link=lambda *_: delay) as world:

        def act(me: int) -> None:
            others = {i: ("", KEYS.public) for i in range(4) if i != me}
            usual = {"me": me, "address": "", "keys": KEYS, "f": 1, "world": world, "patience": PATIENCE}
            peer = peers[me] = Peer(np.ones(2), others, "ios", **{**usual, **options})
            while not peer.total or peer.round < peer.total:
                world.sleep(work)
                peer.exchange(np.array([1.0, me]))
            peer.leave()

        def lie() -> None:
            others = {i: Remote("", "") for i in range(3)}
            script(world, world.open(3, "", KEYS, others, form.size, no_log), form)

        world.start(lie)
        for me in range(3):
            world.start(lambda me=me: act(me))  # type: ignore[misc]
        world.run(seconds)
    return peers


def flood(until: float) -> Script:
    """Sixty messages for each that it hears, until a time; one for each from then on."""

    def script(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            for sender, data in transport.receive(1.0)[0]:
                for _ in range(60 if world.time < until else 1):
                    transport.send(form.encode(np.ones(2), 3, form.decode(data, sender).round))

    return script


def test_a_flooder_is_cut_off_for_longer_each_time() -> None:
    peers = beside(flood(100.0), 60.0, work=0.0, delay=0.2)
    assert all(peer.cut_off.times == {3: 3} for peer in peers.values())  # 10, 20 and 40 seconds


def test_a_neighbour_that_stops_flooding_is_heard_again() -> None:
    for peer in beside(flood(1.0), 2 * FIRST_CUT, work=0.05).values():
        assert peer.cut_off.times == {3: 1} and 3 not in peer.cut_off
        assert peer.round - peer.rounds.seen[3] <= 2


def quiet(world: VirtualWorld, transport: Any, form: Format) -> None:
    world.sleep(1e9)


def test_long_local_work_loses_no_message() -> None:
    """Row 5: twelve seconds of work per round; connections are not taken for dead meanwhile."""
    peers = beside(quiet, 300.0, work=12.0)
    for me, peer in peers.items():
        assert peer.round >= 20
        for other in {0, 1, 2} - {me}:
            assert peer.rounds.verdicts[other]["silent"] == 0


def sends(make: Callable[[Format, int], bytes | bytearray]) -> Script:
    def script(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            for sender, data in transport.receive(1.0)[0]:
                if sender == 0:
                    transport.send(make(form, form.decode(data, sender).round))

    return script


@pytest.mark.parametrize(
    ("reason", "make"),
    [
        ("finite", lambda form, round: form.encode(np.array([1.0, np.inf]), 3, round)),
        ("round", lambda form, round: form.encode(np.ones(2), 3, 1000 + round)),
        ("run", lambda form, round: Format(5, 2, "float64").encode(np.ones(2), 3, round)),
        ("sender", lambda form, round: form.encode(np.ones(2), 2, round)),
        ("size", lambda form, round: form.encode(np.ones(2), 3, round)[:-1]),
        ("checksum", lambda form, round: form.encode(np.ones(2), 3, round)[:-1] + b"!"),
    ],
)
def test_what_is_refused_is_silence_and_named(reason: str, make: Callable[[Format, int], bytearray]) -> None:
    for me, peer in beside(sends(make), 2.0, rounds=1000).items():
        assert set(peer.refused[3]) == {reason} and peer.suspects[0] == 3, me
        assert peer.used[peer.neighbours.index(3)] == 0 and 20 < peer.round < 1000


def test_magnitudes_are_bounded_by_what_the_peer_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger is scaled down, and stays an outlier that the rule cuts."""
    seen: list[float] = []
    former = Rounds.offer

    def offer(rounds: Rounds, sender: int, round: int, vector: Any, now: float) -> str:
        seen.append(float(np.abs(vector).max()))
        return former(rounds, sender, round, vector, now)

    monkeypatch.setattr(Rounds, "offer", offer)
    huge = sends(lambda form, round: form.encode(np.array([1e300, -1e308]), 3, round))
    for peer in beside(huge, 2.0, rounds=1000).values():
        place = peer.neighbours.index(3)
        assert not peer.refused[3] and peer.ignored[place] == peer.used[place] > 20
    assert max(seen) == pytest.approx(2e6)  # the largest coordinate that any honest peer holds is 2


def test_nobody_moves_beyond_the_last_round() -> None:
    """All but one honest peer say so: still nobody goes there."""

    def beyond(world: VirtualWorld, transport: Any, form: Format) -> None:
        while True:
            transport.send(form.encode(np.ones(2), 3, 5000, EVERYONE))
            transport.receive(0.05)

    assert all(peer.round == 40 for peer in beside(beyond, 60.0, rounds=40).values())


def test_two_runs_of_one_config_do_not_understand_each_other(tmp_path: Any) -> None:
    """Row 10: a forgotten process of an earlier run."""
    spec = {"edges": [[0, 1]], "rule": "weimean", "problem": "quadratic"}
    file = make_network(tmp_path, 2, **spec)
    first, second = (file.model_copy(update={"nonce": nonce}) for nonce in ("a", "b"))
    assert len({file.run, first.run, second.run}) == 3
