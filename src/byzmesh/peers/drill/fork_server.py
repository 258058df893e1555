"""The process that starts the peers of a drill: it imports and compiles everything once, then forks.

It reads one JSON object per line from standard input and answers on standard output:

    {"warm": path of the network file, "plugins": []}  -> {"warm": true}
    {"start": name, "job": {...}, "log": path}         -> {"started": name, "pid": 123}
    (a child ended)                                    -> {"ended": name, "pid": 123, "code": 0}

When its input ends, for whatever reason, it kills all its children and exits. So no process outlives a drill, even if
the drill itself was killed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import traceback
from typing import Any

from byzmesh.attacks.base import attacks
from byzmesh.errors import ByzmeshError
from byzmesh.peers.certificates import certificate
from byzmesh.peers.drill.liars import Coalition
from byzmesh.peers.identity import Keyring
from byzmesh.peers.logs import json_log
from byzmesh.peers.network_file import load_network
from byzmesh.peers.node import Node
from byzmesh.peers.share import bind_share
from byzmesh.peers.warm import warm
from byzmesh.peers.working_set import give_back_mapped_files
from byzmesh.plugins import load_plugins

_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


def run_job(job: dict[str, Any]) -> None:
    """The job of a child: be an honest peer, a peer that trains on poisoned data, or all the liars."""
    file = load_network(job["network"])
    log = json_log(job["peers"][0])
    rings = {peer: Keyring(path) for peer, path in zip(job["peers"], job["keys"])}
    actor: Node | Coalition
    if job.get("attack") is not None:
        task, _ = bind_share(file, job["peers"][0])
        found = {peer: ring.find(file.entry(peer).public_key) for peer, ring in rings.items()}
        keys = {peer: pair for peer, pair in found.items() if pair is not None}
        actor = Coalition(file, keys, attacks.build(job["attack"]), task.dimension, log)
    else:
        peer = job["peers"][0]
        task_row = None
        if job.get("flip") is not None:
            shares = file.parts
            task = file.made_problem.bind(
                workers=shares, seed=file.seed, dtype=file.dtype, liars=job["flips"], poison=job["poison"]
            )
            task_row = task, shares + job["flip"]
        actor = Node(
            file,
            peer,
            rings[peer],
            out=job["out"],
            path=job["network"],
            data=job.get("data"),
            task=task_row,
            faults=job["faults"],
            log=log,
        )

    def leave(number: int, frame: Any) -> None:
        actor.stop = True

    signal.signal(signal.SIGTERM, leave)
    gc.freeze()  # as in run_peer.py
    actor.run()


def _child(job: dict[str, Any], log: str) -> int:
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (nothing, 1), (handle, 2)):
        os.dup2(source, target)
    try:
        run_job(job)
    except ByzmeshError as error:
        json_log(job["peers"][0])("failed", error=str(error))
        return error.exit_code
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the launcher handles it, for the children too
    children: dict[int, str] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    text = b""

    def answer(**facts: Any) -> None:
        os.write(1, json.dumps(facts).encode() + b"\n")

    def obey(order: dict[str, Any]) -> None:
        if "warm" in order:
            try:
                load_plugins(order["plugins"])
                file = load_network(order["warm"])
                warm(file, *bind_share(file, file.ids[0]))
                for entry in file.peers:
                    certificate(entry.public_key)
                give_back_mapped_files()
                answer(warm=True)
            except ByzmeshError as error:
                answer(warm=False, error=str(error))
            return
        if "signal" in order:  # here, because only a parent knows whether a number is still that of its child
            if order["to"] in children:
                os.kill(order["to"], order["signal"])
            answer(sent=order["signal"])
            return
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_child(order["job"], order["log"]))
        children[pid] = order["start"]
        answer(started=order["start"], pid=pid)

    try:
        while True:
            ready, _, _ = select.select([0, woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                while children:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                    if pid == 0:
                        break
                    answer(ended=children.pop(pid), pid=pid, code=os.waitstatus_to_exitcode(status))
            if 0 in ready:
                part = os.read(0, 65536)
                if not part:
                    break
                *lines, text = (text + part).split(b"\n")
                for line in lines:
                    obey(json.loads(line))
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in list(children):
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
