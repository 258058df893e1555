"""What a soak showed: soak.json -> README.md and soak.png."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

MB = 1 << 20
_WARM = 120.0
"""Seconds after which a process has all that it needs."""
_LONG = 600.0
"""Shorter lives say little about growth."""


def lives(result: dict[str, Any]) -> dict[tuple[int, int], np.ndarray[Any, Any]]:
    """(peer, process) -> (samples, 3): time, bytes, round."""
    found: dict[tuple[int, int], list[list[float]]] = {}
    for sample in result["samples"]:
        for peer, process, held, number in sample["peers"]:
            if held:  # none in the moment of its end
                found.setdefault((peer, process), []).append([sample["time"], held, number])
    return {key: np.array(rows) for key, rows in found.items()}


def growth(rows: np.ndarray[Any, Any]) -> float | None:
    """MB per hour of one process after its start; None if it did not live long enough."""
    rows = rows[rows[:, 0] >= rows[0, 0] + _WARM]
    if len(rows) < 3 or rows[-1, 0] - rows[0, 0] < _LONG:
        return None
    return float(np.polyfit(rows[:, 0], rows[:, 1], 1)[0] * 3600 / MB)


def longest_stall(result: dict[str, Any]) -> float:
    """Seconds between samples in which no honest peer ended a round."""
    newest = [(one["time"], max((row[3] for row in one["peers"]), default=0)) for one in result["samples"]]
    moved = [newest[0][0], *(time for (_, before), (time, now) in pairwise(newest) if now > before)]
    return max(np.diff([*moved, newest[-1][0]]), default=0.0)


def write_report(out: Path) -> None:
    """README.md and soak.png beside soak.json."""
    result = json.loads((out / "soak.json").read_text())
    found = lives(result)
    rates = {key: rate for key, rows in found.items() if (rate := growth(rows)) is not None}
    most = max(rows[:, 1].max() for rows in found.values()) / MB
    end = result["samples"][-1]["time"]
    sampled = [number for _, _, _, number in result["samples"][-1]["peers"]]
    rounds = list(result.get("rounds", {}).values()) or sampled  # the models are of the rounds at the end
    kinds = Counter(kind for _, kind, _ in result["events"])
    acts = ", ".join(f"{name} {count}" for name, count in sorted(result["acts"].items()))
    faults = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in kinds.items())
    loads = [one["load"] for one in result["samples"]]
    lines = [
        "# Soak: twelve peers beside all that is hostile",
        "",
        f"`python -m benchmarks.soak`, begun {result['began']}, {end / 60:.0f} minutes, {result['pause']} s of pause "
        f"per round; load of the machine {min(loads):.0f} to {max(loads):.0f} on two cores. What happens is in "
        "`benchmarks/soak.py`.",
        "",
        "| what | result |",
        "| --- | --- |",
        f"| rounds | {min(rounds)} to {max(rounds)}; {np.median(sampled) / end:.1f} per second |",
        f"| longest time without a new round at any honest peer, by samples of 10 s | {longest_stall(result):.0f} s |",
        f"| largest process | {most:.0f} MB |",
        f"| growth of the {len(rates)} processes that lived longer than 12 minutes, MB per hour | "
        f"{min(rates.values(), default=np.nan):.1f} to {max(rates.values(), default=np.nan):.1f} |",
        f"| faults | {faults} |",
        f"| acts of peer 9 and of strangers | {acts} |",
    ]
    lines += _members(result)
    if "accuracy" in result:
        accuracy, simulated = list(result["accuracy"].values()), result["simulated"]
        lines += [
            f"| exit codes on SIGTERM | {sorted(set(result['codes'].values()), key=str)} |",
            f"| accuracy of the honest peers' final models | mean {np.mean(accuracy):.4f}, worst {min(accuracy):.4f} |",
            f"| simulator after as many rounds, twelve members, 7 and 9 forge | {simulated['isolation']:.4f} |",
            f"| simulator after as many rounds, twelve members, 7 and 9 silent | {simulated['silent']:.4f} |",
        ]
    lines += _findings(result)
    lines += ["", "![memory and rounds](soak.png)", ""]
    (out / "README.md").write_text("\n".join(lines))
    _draw(found, result, out / "soak.png")


def _members(result: dict[str, Any]) -> list[str]:
    changes = result["changes"]
    kinds = Counter(change["what"].replace("_", " ") for change in changes)
    seconds = [change["seconds"] for change in changes if "seconds" in change]
    taken = f"{min(seconds)} to {max(seconds)} s, median {np.median(seconds):.1f}" if seconds else "never"
    lines = [
        f"| changes of members | {', '.join(f'{kind} {count}' for kind, count in kinds.items())} |",
        f"| time until a new file was in force at all honest peers ({len(seconds)} of {len(changes)}) | {taken} |",
        f"| messages that a replaced or removed key could read | {result['stolen']} |",
    ]
    if "epochs" in result:
        lines += [
            f"| epoch in force at the honest peers at the end | {sorted(set(result['epochs'].values()))} |",
            f"| exit codes of removed peers | {sorted(set(result['removed'].values()), key=str)} |",
        ]
    return lines


def _findings(result: dict[str, Any]) -> list[str]:
    lines = ["", f"**Peers that ended by themselves: {len(result['ended'])}.**", ""]
    for end in result["ended"]:
        last = end["log"][-1] if end["log"] else "nothing logged"
        lines.append(f"- after {end['time']:.0f} s: {end['who']}, exit code {end['code']}, last line `{last[:300]}`")
    said = (f"{event} {sum(peers.values())}" for event, peers in result["log"].items())
    return [*lines, "", "Logged by the honest peers: " + ", ".join(said) + "."]


def _draw(found: dict[tuple[int, int], np.ndarray[Any, Any]], result: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    memory, progress = figure.subplots(2, 1, sharex=True)
    for (peer, _), rows in found.items():
        colour = f"C{peer % 10}"
        memory.plot(rows[:, 0] / 60, rows[:, 1] / MB, color=colour, linewidth=1)
        progress.plot(rows[:, 0] / 60, rows[:, 2], color=colour, linewidth=1)
    for time, kind, _ in result["events"]:
        if kind.startswith("kill"):
            memory.axvline(time / 60, color="0.85", linewidth=0.6, zorder=0)
    memory.set(ylabel="MB per process", ylim=(0, None))
    progress.set(ylabel="round", xlabel="minutes (grey: kills)", ylim=(0, None))
    figure.savefig(path, dpi=110)
