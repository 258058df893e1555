"""Bad networks: netem in a network namespace where the kernel has it, else a proxy that delays."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

DELAY = 0.05
LOSS = 0.05
RETRANSMISSION = 0.2
"""What a lost segment costs a TCP stream at least on Linux."""


@contextmanager
def netem_namespace() -> Iterator[str | None]:
    """Name of a network namespace whose loopback delays and loses, None if this kernel or user cannot have one."""
    name = f"byzmesh{os.getpid()}"
    commands = (
        f"ip netns add {name}",
        f"ip netns exec {name} ip link set lo up",
        f"ip netns exec {name} tc qdisc add dev lo root netem delay {DELAY * 1000:.0f}ms loss {LOSS:.0%}",
    )
    able = shutil.which("ip") is not None and shutil.which("tc") is not None
    try:
        yield name if able and all(_works(command) for command in commands) else None
    finally:
        if able:
            _works(f"ip netns del {name}")


def _works(command: str) -> bool:
    return subprocess.run(command.split(), capture_output=True, check=False).returncode == 0


class Proxy:
    """Forwards TCP with 50 ms of delay each way; one chunk in twenty stalls its stream as a loss would."""

    def __init__(self, targets: dict[int, int]) -> None:
        """targets: port here -> port that is meant."""
        self.targets = targets
        self.random = random.Random(0)
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.ready.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        for port, target in self.targets.items():
            self.loop.run_until_complete(asyncio.start_server(partial(self._serve, target), "127.0.0.1", port))
        self.ready.set()
        self.loop.run_forever()

    async def _serve(self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0.0, due - self.loop.time()))
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        task = self.loop.create_task(deliver())
        due, data = 0.0, b"?"
        with suppress(OSError):
            while data:
                data = await reader.read(1 << 16)
                stall = RETRANSMISSION if self.random.random() < LOSS else 0.0
                due = max(due, self.loop.time() + DELAY + stall)
                queue.put_nowait((due, data))
        with suppress(OSError):
            await task

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
