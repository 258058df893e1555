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
import json
import os
import select
import signal
import traceback
from typing import Any

import numpy as np

from byzmesh.attacks.base import attacks
from byzmesh.errors import ByzmeshError
from byzmesh.peers.drill.liars import Coalition
from byzmesh.peers.identity import load_keys
from byzmesh.peers.logs import json_log
from byzmesh.peers.network_file import NetworkFile, load_network
from byzmesh.peers.node import Node, bind_share, local_round
from byzmesh.peers.wire import Format
from byzmesh.plugins import load_plugins
from byzmesh.rules.inbox import make_inbox
from byzmesh.rules.interop import to_host

_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


def run_job(job: dict[str, Any]) -> None:
    """The job of a child: be an honest peer, a peer that trains on poisoned data, or all the liars."""
    file = load_network(job["network"])
    log = json_log(job["peers"][0])
    keys = {peer: load_keys(path) for peer, path in zip(job["peers"], job["keys"])}
    actor: Node | Coalition
    if job.get("attack") is not None:
        task, _ = bind_share(file, job["peers"][0])
        actor = Coalition(file, keys, attacks.build(job["attack"]), task.dimension, log)
    else:
        peer = job["peers"][0]
        task_row = None
        if job.get("flip") is not None:
            shares = file.shares or len(file.peers)
            task = file.made_problem.bind(
                workers=shares, seed=file.seed, dtype=file.dtype, liars=job["flips"], poison=job["poison"]
            )
            task_row = task, shares + job["flip"]
        actor = Node(
            file, peer, keys[peer], out=job["out"], data=job.get("data"), task=task_row, faults=job["faults"], log=log
        )

    def leave(number: int, frame: Any) -> None:
        actor.stop = True

    signal.signal(signal.SIGTERM, leave)
    actor.run()


def warm(file: NetworkFile) -> None:
    """Compile or load every kernel that a peer of this network uses, and read its data."""
    task, row = bind_share(file, 0)
    model = to_host(task.initial())[row : row + 1].copy()
    local = local_round(file, task, row)
    local.start(model)
    half = local.half_steps(model, 0)
    task.evaluate(model)
    form = Format(file.run, task.dimension, file.dtype, file.wire)
    vector = form.decode(form.encode(half[0], 0, 0), 0).vector
    count = int(file.network.degree[0])
    inbox = make_inbox(
        file.made_rule,
        half,
        weight=np.full((1, count + 1), 1.0 / (count + 1)),
        f=np.array([file.bound(0)]),
        receiver=np.zeros(1, np.int64),
        messages=np.repeat(vector[None], count, axis=0),
        previous=model,
        loss=local.losses(0),
    )
    file.made_rule.apply(inbox, file.made_rule.init(half))


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher handles Ctrl-C
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
                warm(load_network(order["warm"]))
                answer(warm=True)
            except ByzmeshError as error:
                answer(warm=False, error=str(error))
            return
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
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
