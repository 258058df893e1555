"""docs/images/under-attack.svg: a network under attack, round by round, with the plain mean and with IOS.

    python scripts/site/animation.py

Two simulations of the same ten honest workers and two liars (isolation, one digit per worker). A worker's colour is
the accuracy of its model, a link fades as its receiver cuts the sender. The picture is an SVG that moves by itself,
without a script, so that it works inside an `img`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parents[2] / "docs" / "images" / "under-attack.svg"
RULES = {"WeiMean": "plain weighted mean", "IOS": "IOS"}
EVERY, ROUNDS, SECONDS = 25, 600, 9.0
HOLD = 0.22
"""Fraction of the time that the last picture stays."""
COLOURS = ((0.1, "#e0455a"), (0.3, "#e88a4a"), (0.5, "#e6c34a"), (0.7, "#7cc36a"), (0.85, "#2fa7a0"))
WIDTH, HEIGHT = 760, 422
_FOREVER = f'dur="{SECONDS}s" repeatCount="indefinite"'


def main() -> None:
    """Simulate and write the picture."""
    import byzmesh as bm

    runs = {}
    for rule in RULES:
        simulation = bm.prepare(
            network="paper/two-castle",
            problem={"name": "softmax", "partition": "one-class"},
            rule=rule,
            attack="isolation",
            rounds=ROUNDS,
            evaluate_every=EVERY,
            profile="paper",
            dtype="float32",
        )
        runs[rule] = (simulation.run(), simulation.network)
    OUT.write_text(picture(runs))
    print(f"{OUT} ({OUT.stat().st_size // 1024} kB)")


def picture(runs: dict[str, tuple[Any, Any]]) -> str:
    """The SVG."""
    body = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#101a2b"/>',
        _text(WIDTH / 2, 26, "Two of twelve workers lie (red squares). Which rule do the others use?", 15),
    ]
    for number, (rule, (run, net)) in enumerate(runs.items()):
        body.append(_panel(30 + 370 * number, rule, run, net))
    body.append(_curves({rule: run for rule, (run, _) in runs.items()}))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif" role="img" '
        'aria-label="Honest workers under the isolation attack: with a plain mean they stay near 10 percent, with IOS '
        'they learn">\n' + "\n".join(body) + "\n</svg>\n"
    )


def _panel(left: float, rule: str, run: Any, net: Any) -> str:
    spots = net.positions - net.positions.min(axis=0)
    scale = min(300.0 / np.ptp(spots[:, 0]), 190.0 / np.ptp(spots[:, 1]))
    placed = [(left + 18 + scale * x, 212 - scale * y) for x, y in spots.tolist()]
    cut = {(int(s), int(r)): float(c) / max(float(n), 1.0) for s, r, c, n in
           zip(run.edges.sender, run.edges.receiver, run.edges.cut, run.edges.rounds)} if run.edges else {}  # fmt: skip
    parts = [_text(left + 165, 56, RULES[rule], 14, weight=600)]
    for a, b in net.links.both_ways().tolist():
        lost = max(cut.get((a, b), 0.0), cut.get((b, a), 0.0)) if net.lies[[a, b]].any() else 0.0
        colour = "#b4485a" if net.lies[[a, b]].any() else "#7d93b5"
        (x1, y1), (x2, y2) = placed[a], placed[b]
        fade = ""
        if lost > 0.5:
            fade = f'<animate attributeName="opacity" values=".9;.08;.08" keyTimes="0;.12;1" {_FOREVER}/>'
        parts.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{colour}" stroke-width="1.1" '
            f'opacity=".55">{fade}</line>'
        )
    row = {int(worker): number for number, worker in enumerate(net.honest)}
    for node, (x, y) in enumerate(placed):
        if net.lies[node]:
            parts.append(
                f'<rect x="{x - 10:.0f}" y="{y - 10:.0f}" width="20" height="20" rx="3" fill="#d7263d">'
                '<animate attributeName="fill" values="#d7263d;#ff6b7d;#d7263d" dur="1.2s" repeatCount="indefinite"/>'
                "</rect>"
            )
        else:
            series = run.workers["accuracy"][:, row[node]]
            last = _colour(float(series[-1]))
            shades = ";".join([*map(_colour, series.tolist()), last])
            parts.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="12" fill="{last}">'
                f'<animate attributeName="fill" values="{shades}" {_times(len(series))}/></circle>'
            )
        parts.append(_text(x, y + 4, str(node), 10.5, colour="#0b1220" if not net.lies[node] else "#fff"))
    return "".join(parts)


def _curves(runs: dict[str, Any]) -> str:
    """Accuracy over the rounds, with a cursor that moves."""
    left, right, top, bottom = 70.0, 560.0, 252.0, 382.0
    parts = [
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#5b6f90"/>',
        _text(left - 8, top + 4, "100%", 11, anchor="end"),
        _text(left - 8, bottom + 4, "0%", 11, anchor="end"),
        _text((left + right) / 2, bottom + 24, f"accuracy of the honest workers over {ROUNDS} rounds", 12),
    ]
    colours = {"WeiMean": "#e88a4a", "IOS": "#41c7bd"}
    for rule, run in runs.items():
        values = run.metrics["accuracy"]
        xs = np.linspace(left, right, len(values))
        points = " ".join(f"{x:.1f},{bottom - (bottom - top) * y:.1f}" for x, y in zip(xs, values.tolist()))
        end = bottom - (bottom - top) * float(values[-1])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colours[rule]}" stroke-width="2.5"/>')
        label = f"{RULES[rule]} {100 * float(values[-1]):.0f}%"
        parts.append(_text(right + 10, end + 4, label, 13, anchor="start", colour=colours[rule]))
    parts.append(
        f'<rect x="{right}" y="{top}" width="0" height="{bottom - top}" fill="#101a2b" opacity=".8">'
        f'<animate attributeName="x" values="{left + 1};{right};{right}" {_ends()}/>'
        f'<animate attributeName="width" values="{right - left - 1};0;0" {_ends()}/></rect>'
    )
    return "".join(parts)


def _ends() -> str:
    return f'keyTimes="0;{1 - HOLD:.2f};1" {_FOREVER}'


def _times(count: int) -> str:
    """Key times of `count` values and one more that holds the last."""
    times = [f"{(1 - HOLD) * number / (count - 1):.3f}" for number in range(count)]
    return f'keyTimes="{";".join([*times, "1"])}" {_FOREVER}'


def _colour(accuracy: float) -> str:
    """Red at 10%, green-blue from 85% on."""
    levels = np.array([level for level, _ in COLOURS])
    tones = np.array([[int(tone[i : i + 2], 16) for i in (1, 3, 5)] for _, tone in COLOURS], float)
    mixed = [np.interp(accuracy, levels, tones[:, channel]) for channel in range(3)]
    return "#" + "".join(f"{round(value):02x}" for value in mixed)


def _text(
    x: float, y: float, words: str, size: float, *, anchor: str = "middle", colour: str = "#dbe6f7", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}">{words}</text>'
    )


if __name__ == "__main__":
    main()
