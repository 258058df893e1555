"""Every number of docs/performance.md about rounds, aggregations and scale, as tables to paste, in parts.

    python benchmarks/speed.py BEFORE [PART ...] [--out speed.md] [--official PATH]

BEFORE is the Python of an environment with an earlier checkout (see before_after.py). The parts, all by default, take
some ten minutes on a quiet machine with two cores:

    rounds     rounds of each rule before and after (before_after.py)
    phases     an IOS round beside its arithmetic floor (`byzmesh bench`)
    rivals     our rules beside those of ByzFL and ByzPy, where they are installed (rivals.py)
    scale      growth, threads, dimension, start-up (scale.py)
    sparse     100,000 workers (scale.py; needs 14 GB)

A part that is done is added to the file with the date, the processor and the load before and after it. A part that is
in the file already is not computed again, so an interrupted run goes on where it was; delete the file to begin anew.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from byzmesh.studies.bench import phases_table

HERE = Path(__file__).resolve().parent


def processor() -> str:
    """The processor's name, and whether it has AVX2 and AVX-512."""
    file = Path("/proc/cpuinfo")
    if not file.exists():
        return platform.processor()
    lines = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in lines.items()}
    flags = fields.get("flags", "").split()
    return f"{fields.get('model name')}, {', '.join(flag for flag in ('avx2', 'avx512f') if flag in flags)}"


def script(name: str, *arguments: str) -> str:
    """What another script prints."""
    done = subprocess.run([sys.executable, HERE / name, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def phases() -> str:
    lines = []
    for dtype in ("float32", "float64"):
        lines += [f"| phase of an IOS round, {dtype} | ms | floor | ratio |", "| --- | ---: | ---: | ---: |"]
        for row in phases_table(dtype, repeats=40):
            floor = f"{row['floor_ms']:.3f} | {row['ratio']:.2f}" if "ratio" in row else " | "
            lines.append(f"| {row['phase']} | {row['ms']:.3f} | {floor} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="Python of the environment with the earlier checkout")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--out", type=Path, default=Path("speed.md"))
    parser.add_argument("--official", metavar="PATH", help="a checkout of the paper's code, for the part rivals")
    options = parser.parse_args()
    official = ["--official", options.official] if options.official else []
    known: dict[str, Callable[[], str]] = {
        "rounds": lambda: script("before_after.py", options.before),
        "phases": phases,
        "rivals": lambda: script("rivals.py", *official),
        "scale": lambda: script("scale.py", "growth", "threads", "dimension", "startup"),
        "sparse": lambda: script("scale.py", "sparse"),
    }
    unknown = [part for part in options.parts if part not in known]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(known)}")
    for part in options.parts or known:
        done = options.out.read_text() if options.out.exists() else ""
        if f"## {part}\n" in done:
            print(f"{part}: in {options.out} already", flush=True)
            continue
        load, began = os.getloadavg()[0], time.monotonic()
        table = known[part]()
        after, minutes = os.getloadavg()[0], (time.monotonic() - began) / 60
        heading = (
            f"## {part}\n{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {processor()}, {os.cpu_count()} cores, "
            f"load {load:.1f} before and {after:.1f} after, {minutes:.1f} minutes\n"
        )
        options.out.write_text(f"{done}{heading}\n{table.rstrip()}\n\n")
        print(f"{heading}\n{table}", flush=True)


if __name__ == "__main__":
    main()
