"""Every number of docs/performance.md about rounds and aggregations, in one run of a few minutes.

    python benchmarks/speed.py BEFORE     # the Python of an environment with an earlier checkout: see before_after.py

Prints the date, the processor and the load, rounds before and after, the phases of an IOS round beside their arithmetic
floor (`byzmesh bench`), and our rules beside those of other libraries (rivals.py).
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
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


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    load = os.getloadavg()[0]
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {processor()}, {os.cpu_count()} cores, load {load:.1f}\n", flush=True
    )
    subprocess.run([sys.executable, HERE / "before_after.py", sys.argv[1]], check=True)
    for dtype in ("float32", "float64"):
        print(f"\n| phase of an IOS round, {dtype} | ms | floor | ratio |\n| --- | ---: | ---: | ---: |")
        for row in phases_table(dtype, repeats=40):
            floor = f"{row['floor_ms']:.3f} | {row['ratio']:.2f}" if "ratio" in row else " | "
            print(f"| {row['phase']} | {row['ms']:.3f} | {floor} |", flush=True)
    print(flush=True)
    subprocess.run([sys.executable, HERE / "rivals.py"], check=True)


if __name__ == "__main__":
    main()
