"""Processes that the tests start: `python workers.py VERB PATH ...`; they print what they have done, line by line."""

import os
import random
import resource
import sys

import numpy as np

from byzmesh.errors import StoreError
from byzmesh.store import open_store, this_process

NOBODY = 65534


def values(writer: str, number: int, length: int = 50) -> np.ndarray:
    """The series that a writer stores for a run: irregular bits, known to the reader."""
    return np.random.default_rng([len(writer), ord(writer[0]), number]).standard_normal(length)


def write(path: str, writer: str, count: int, length: int = 50) -> None:
    with open_store(path) as store:
        for number in range(count):
            key = store.plan({"writer": writer, "number": number})
            if store.get(key).status == "finished":
                continue
            claimed = store.claim(key, this_process())
            stored = store.finish(key, "finished", {"loss": values(writer, number, length)}, owner=this_process())
            print(key, number, claimed and stored, flush=True)


def claim(path: str, seed: int) -> None:
    with open_store(path) as store:
        keys = [run.key for run in store.list()]
        random.Random(seed).shuffle(keys)
        for key in keys:
            if store.claim(key, this_process()):
                print(key, flush=True)
        print("done", flush=True)
        sys.stdin.read()  # stay alive: a dead owner's runs would be free again


def fill(path: str, largest_file: int) -> None:
    """Write until the disk (or, if given, the allowed size of a file) is full."""
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    try:
        write(path, "filler", 10**6, length=2000)
    except StoreError as error:
        print("StoreError", error, flush=True)
    os._exit(0)  # no clean closing: what counts is what was committed


def unprivileged(path: str, mode: str) -> None:
    """Open as a user who may not write, then list."""
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        with open_store(path, readonly=mode == "read") as store:
            print("opened", len(store.list()))
    except StoreError as error:
        print("StoreError", error)


if __name__ == "__main__":
    verb, path, *rest = sys.argv[1:]
    if verb == "write":
        write(path, rest[0], int(rest[1]))
    elif verb == "claim":
        claim(path, int(rest[0]))
    elif verb == "fill":
        fill(path, int(rest[0]))
    else:
        unprivileged(path, rest[0])
