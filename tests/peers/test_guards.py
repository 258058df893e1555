"""Guards of the sockets cannot be turned around: rows 1, 2, 7 and 8 of issue 18."""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from byzmesh.peers import doorkeeper as doorkeepers
from byzmesh.peers import sockets as socket_module
from byzmesh.peers.certificates import certificate, contexts
from byzmesh.peers.doorkeeper import SHARE
from byzmesh.peers.handshake import Handshake, Refused
from byzmesh.peers.identity import Keys, new_keys
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.tcp import split_address
from byzmesh.peers.transport import Remote
from tests.peers.hostile import dial, finish
from tests.peers.networks import LONG, free_ports

pytestmark = pytest.mark.real


@pytest.mark.parametrize(("files", "most"), [(400, 100), (1 << 16, 1000), (16, 20)])
def test_a_quarter_of_the_files_may_be_connections_from_outside(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int
) -> None:
    """Row 8; and no fewer than the neighbours need."""
    monkeypatch.setattr(socket_module, "file_limit", lambda: files)
    made, _, _ = sockets()
    made[0].close(0)
    assert made[0]._door._silent.most + made[0]._door._talking.most == most


def hello(keys: Keys) -> bytes:
    """How a handshake with whoever has these keys begins."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Handshake(ours, contexts(keys, [])[0], accepted=False).go_on()
        return theirs.recv(1 << 14)


@pytest.mark.parametrize("several", [1, 300])
def test_strangers_handshakes_take_a_bounded_part_of_a_processor(monkeypatch: pytest.MonkeyPatch, several: int) -> None:
    """Row 1: as many as they like, also at once; the doorkeeper rests after each slice, also after one that took longer
    than it should, before it attends to anybody again; a neighbour is let in, and nobody is cut off."""
    monkeypatch.setattr(doorkeepers, "HANDSHAKE_SECONDS", 10 * LONG)
    made, keys, where = sockets()
    door, ended, spent, rested = made[0]._door, threading.Event(), list[float](), [0.0]
    unpaid = list[float]()
    begun, attend = hello(new_keys()), door._attend

    def measure(others: list[Any], limit: float) -> None:
        if time.monotonic() < rested[-1]:
            unpaid.append(rested[-1] - time.monotonic())
        began = time.thread_time()
        attend(others, limit)
        while others and len(spent) < 3 and time.thread_time() < began + 2.5 * doorkeepers._SLICE:
            pass
        if others:
            spent.append(time.thread_time() - began)
            rested.append(time.monotonic() + (1.0 / SHARE - 1.0) * spent[-1])

    def knock() -> None:
        while not ended.is_set():
            with contextlib.ExitStack() as stack, contextlib.suppress(OSError, Refused, AssertionError):
                if several == 1:
                    dial(where[0], keys[0].public, new_keys(), seconds=1.0)
                links = [stack.enter_context(knocking(where[0])) for _ in range(several)]
                for link in links:
                    link.send(begun)
                links[0].recv(1)

    monkeypatch.setattr(door, "_attend", measure)
    stranger = threading.Thread(target=knock)
    try:
        stranger.start()
        limit = time.monotonic() + LONG
        while made[0].strangers < 20 * min(several, 5) or len(spent) < 5:
            assert time.monotonic() < limit
            made[0].receive(0.01)
        friend = dial(where[0], keys[0].public, keys[1], source="127.0.0.2")
        assert until(made[0], bool) == [1]
        assert not unpaid
        friend.link.close()
    finally:
        ended.set()
        stranger.join()
        made[0].close(0)


def knocking(address: str, source: str = "127.0.0.1") -> socket.socket:
    """A connection that has said nothing yet."""
    return socket.create_connection(split_address(address), LONG, source_address=(source, 0))


def crowded(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[int, Sockets], dict[int, Keys], dict[int, str]]:
    """With room for twenty handshakes, which may take as long as they like."""
    monkeypatch.setattr(socket_module, "file_limit", lambda: 16)
    monkeypatch.setattr(doorkeepers, "HANDSHAKE_SECONDS", 10 * LONG)
    return sockets()


def test_too_many_connections_cost_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 8, without the help of the time that a handshake may take."""
    made, keys, where = crowded(monkeypatch)
    links = []
    try:
        for _ in range(60):
            links.append(knocking(where[0]))
        for link in links[:40]:
            assert link.recv(1) == b""
        friend = dial(where[0], keys[0].public, keys[1])
        assert until(made[0], bool) == [1]
        friend.link.close()
    finally:
        for link in links:
            link.close()
        made[0].close(0)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_silent_strangers_displace_neither_others_nor_who_has_begun(
    monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """Who comes from elsewhere keeps its place, and so does who comes from the same machine and has said something."""
    made, keys, where = crowded(monkeypatch)
    with contextlib.ExitStack() as stack:
        stack.callback(made[0].close, 0)
        friend = stack.enter_context(knocking(where[0], "127.0.0.2" if elsewhere else "127.0.0.1"))
        handshake = Handshake(friend, contexts(keys[1], [certificate(keys[0].public)])[0], accepted=False)
        if not elsewhere:
            handshake.go_on()
            assert friend.recv(1, socket.MSG_PEEK)  # it was answered
        crowd = [stack.enter_context(knocking(where[0])) for _ in range(60)]
        for link in crowd[:40]:
            assert link.recv(1) == b""
        if elsewhere:
            handshake.go_on()
        friend.setblocking(False)
        finish(handshake)
        assert until(made[0], bool) == [1]


def test_a_connection_that_is_gone_when_it_is_accepted_costs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, where = crowded(monkeypatch)
    accept, failed = socket.socket.accept, threading.Event()

    def gone(listener: socket.socket) -> tuple[socket.socket, object]:
        link, address = accept(listener)
        if not failed.is_set():
            link.close()
            failed.set()
            raise ConnectionAbortedError(errno.ECONNABORTED, "gone")
        return link, address

    with contextlib.ExitStack() as stack:
        stack.callback(made[0].close, 0)
        first = stack.enter_context(knocking(where[0]))
        limit = time.monotonic() + LONG
        while not made[0]._door._silent.of("127.0.0.1"):  # its own dials are visitors, too
            assert time.monotonic() < limit
            made[0].receive(0.01)
        monkeypatch.setattr(socket.socket, "accept", gone)
        stack.enter_context(knocking(where[0]))
        assert failed.wait(LONG)
        last = stack.enter_context(knocking(where[0]))
        while made[0]._door._silent.of("127.0.0.1") < 2:
            assert time.monotonic() < limit
            made[0].receive(0.01)
        for link in (first, last):
            link.setblocking(False)
            with pytest.raises(BlockingIOError):
                link.recv(1)


def looking_up(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], list[object]]) -> None:
    """The host `slow.example` has a name server of its own."""
    ask = socket.getaddrinfo

    def answered(host: str, *words: Any, **facts: Any) -> Any:
        if host != "slow.example":
            return ask(host, *words, **facts)
        if facts["flags"] & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "a name")
        return answer()

    monkeypatch.setattr(socket, "getaddrinfo", answered)


def test_a_name_server_that_does_not_answer_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither other neighbours, nor strangers, nor who wants to end."""
    asked, answered = threading.Event(), threading.Event()

    def answer() -> list[object]:
        asked.set()
        answered.wait(2 * LONG)
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    looking_up(monkeypatch, answer)
    keys = [new_keys() for _ in range(3)]
    where = ["127.0.0.1:" + str(port) for port in free_ports(2)]
    far = {1: Remote("slow.example:7000", keys[1].public), 2: Remote(where[1], keys[2].public)}
    one = Sockets(0, where[0], keys[0], far, 100)
    other = Sockets(2, where[1], keys[2], {0: Remote(where[0], keys[0].public)}, 100)
    try:
        assert asked.wait(LONG)
        assert until(other, bool) == [0] and until(one, bool) == [2]
        ending = threading.Thread(target=one.close, args=(0,))
        ending.start()
        ending.join(LONG)
        assert not ending.is_alive() and not answered.is_set()
    finally:
        answered.set()
        one.close(0)
        other.close(0)


def test_all_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host may have one where nobody listens; and what cannot be a name is tried again later."""
    ports, times = free_ports(3), list[float]()

    def answer() -> list[object]:
        times.append(time.monotonic())
        if len(times) == 1:
            raise UnicodeError("label too long")
        kind = socket.AF_INET, socket.SOCK_STREAM, 0, ""
        return [(*kind, ("127.0.0.1", port)) for port in (ports[2], ports[1])]

    looking_up(monkeypatch, answer)
    keys = [new_keys(), new_keys()]
    where = [f"127.0.0.1:{ports[0]}", f"slow.example:{ports[1]}"]
    made = [  # who is looked up listens already
        Sockets(1, f"127.0.0.1:{ports[1]}", keys[1], {0: Remote(where[0], keys[0].public)}, 100),
        Sockets(0, where[0], keys[0], {1: Remote(where[1], keys[1].public)}, 100),
    ]
    try:
        assert until(made[0], bool) == [0]
        assert len(times) == 2
    finally:
        for transport in made:
            transport.close(0)


@pytest.mark.parametrize("log", ["works", "fails"])
def test_nothing_ends_the_doorkeeper(log: str) -> None:
    """Row 7 and friction 1: whatever fails in it is logged, if the log works, and strangers are still refused."""
    made, keys, where = sockets()
    said: list[str] = []

    def fail() -> bool:
        raise OSError(107, "Transport endpoint is not connected")

    def note(event: str, **facts: object) -> None:
        said.append(event)
        if log == "fails":
            raise ValueError("I/O operation on closed file")

    made[0]._door._log = note
    made[0]._door._serve = fail
    try:
        limit = time.monotonic() + LONG
        while said.count("guard failed") < 3 or made[0].strangers == 0:
            assert time.monotonic() < limit and made[0].guarding
            with pytest.raises((Refused, OSError)):
                dial(where[0], keys[0].public, new_keys())
        assert made[0].guarding
    finally:
        made[0].close(0)


def test_a_doorkeeper_that_is_stuck_does_not_stop_its_peer() -> None:
    """It is told of what has changed as often as one likes."""
    made, *_ = sockets()
    stuck, go = threading.Event(), threading.Event()

    def serve() -> bool:
        stuck.set()
        return go.wait(2 * LONG)

    def tell() -> None:
        for _ in range(3000):
            made[0].disconnect(1)
            made[0].connect(1)

    made[0]._door._serve = serve
    telling = threading.Thread(target=tell, daemon=True)
    try:
        assert stuck.wait(LONG)
        telling.start()
        telling.join(LONG)
        assert not telling.is_alive()
    finally:
        go.set()
        telling.join(LONG)
        made[0].close(0)


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
    limit = time.monotonic() + LONG
    while time.monotonic() < limit:
        joined += transport.receive(0.01)[1]
        if found(joined):
            return joined
    raise AssertionError(f"waited in vain, joined: {joined}")


def test_a_join_is_who_was_authenticated() -> None:
    """Row 2: nobody can be announced under another's id, and whoever joins twice is one."""
    made, keys, where = sockets()
    try:
        links = [dial(where[0], keys[0].public, keys[who]).link for who in (2, 2, 1)]
        assert set(until(made[0], lambda joined: 1 in joined)) == {1, 2}
        assert sorted(made[0]._voices) == [1, 2]
        links[2].sendall(struct.pack("<H", 2) * 10)  # whoever listens has nothing to say
        until(made[0], lambda joined: sorted(made[0]._voices) == [2])
        for link in links:
            link.close()
    finally:
        made[0].close(0)


def test_a_key_that_is_no_members_any_more_is_shut_out_at_once() -> None:
    """Also where it is connected already; others notice nothing."""
    made, keys, where = sockets()
    try:
        kept, gone = (dial(where[0], keys[0].public, keys[who]).link for who in (1, 2))
        until(made[0], lambda joined: {1, 2} <= set(joined))
        made[0].change(where[0], keys[0], {1: Remote(where[1], keys[1].public)})
        gone.settimeout(LONG)
        assert gone.recv(1) == b"" and sorted(made[0]._voices) == [1]
        with pytest.raises((Refused, OSError)):
            dial(where[0], keys[0].public, keys[2])
        kept.close()
    finally:
        made[0].close(0)


def test_connect_and_reset_does_not_disarm_a_peer() -> None:
    """Row 7: 1,900 of them."""
    made, keys, where = sockets()
    try:
        for _ in range(1900):
            link = socket.create_connection(split_address(where[0]))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
        friend = dial(where[0], keys[0].public, keys[1])
        assert until(made[0], bool)[0] == 1 and made[0].guarding
        friend.link.close()
    finally:
        made[0].close(0)


CROWDED = """
import resource, sys, time
from byzmesh.peers.identity import Keys
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.transport import Remote
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
seconds, address, public, secret, far, other = sys.argv[1:]
transport = Sockets(0, address, Keys(public, secret), {1: Remote(far, other)}, 100)
print("ready", flush=True)
limit = time.monotonic() + float(seconds)
while not transport.receive(0.05)[1]:
    if time.monotonic() > limit:
        sys.exit("nobody joined")
print("joined", flush=True)
open(__file__ if "__file__" in globals() else "/dev/null").close()
transport.close(0)
"""


def test_idle_connections_up_to_the_file_limit_do_not_lock_neighbours_out() -> None:
    """Row 8: more connections than the process may have files."""
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 500
    keys, where = [new_keys(), new_keys()], [f"127.0.0.1:{port}" for port in free_ports(2)]
    words = [str(LONG), where[0], keys[0].public, keys[0].secret, where[1], keys[1].public]
    process = subprocess.Popen([sys.executable, "-c", CROWDED, *words], stdout=subprocess.PIPE, text=True)
    links: list[socket.socket] = []
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for _ in range(300):
            links.append(socket.create_connection(split_address(where[0]), timeout=LONG))
        friend = dial(where[0], keys[0].public, keys[1])
        assert process.stdout.readline() == "joined\n"
        assert process.wait(LONG) == 0
        friend.link.close()
    finally:
        process.kill()
        process.wait()
        for link in links:
            link.close()


def test_a_neighbour_that_floods_and_hangs_up_does_a_busy_peer_no_harm() -> None:
    """Found by the soak, with ZeroMQ. The peer computes meanwhile; then it reads what was left, and hears it again."""
    made, keys, where = sockets((0, 1))
    try:
        for _ in range(2):
            liar = Sockets(1, where[1], keys[1], {0: Remote(where[0], keys[0].public)}, 1000)
            limit = time.monotonic() + LONG
            while not liar.receive(0.01)[1]:  # nobody calls receive at the other end: its doorkeeper does the rest
                assert time.monotonic() < limit
            for _ in range(300):
                liar.send(bytes(2 * [255]) + bytes(90))
            liar.close(0.0)
            heard = 0
            while not heard or 1 in made[0]._ears:  # whatever is left of the link is read to its end
                assert time.monotonic() < limit
                heard += len(made[0].receive(0.01)[0])
        assert made[0].guarding
    finally:
        made[0].close(0)


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
