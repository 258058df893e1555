"""The generated pages of the reference, by path on the site."""

from __future__ import annotations

import parts
from commands import commands_page
from config_page import config_page
from docstrings import markdown_of


def pages() -> dict[str, str]:
    """Markdown by path."""
    made = {f"reference/{kind}.md": parts.page(kind) for kind in parts.KINDS}
    made["reference/index.md"] = _overview()
    made["reference/api.md"] = _api()
    made["reference/cli.md"] = commands_page()
    made["reference/config.md"] = config_page()
    made["reference/wire.md"] = _wire()
    return made


def _overview() -> str:
    lines = ["# Reference", "", "Generated from the code that runs.", "", "| page | what is there |", "| --- | --- |"]
    lines += [f"| [{parts.title(kind)}]({kind}.md) | {parts.overview(kind)} |" for kind in parts.KINDS]
    lines += [
        "| [Python](api.md) | every public name of `byzmesh` |",
        "| [Commands](cli.md) | `byzmesh` on the command line |",
        "| [Config](config.md) | the keys of a run's config, with their defaults |",
        "| [Wire format](wire.md) | the bytes between peers |",
    ]
    return "\n".join(lines) + "\n"


GROUPS = {
    "Aggregate": (
        *("aggregate", "aggregate_all", "rule", "forge", "attack"),
        *("arc", "bucketing", "generic", "nnm", "weighted_nnm"),
    ),
    "Simulate": ("simulate", "prepare", "Simulation", "Run", "Evaluation", "plot", "audit", "open_store"),
    "Networks": ("network", "Network", "process", "Process"),
    "Theory": ("certify", "check_theorems", "estimate_constants", "Contraction", "Neighbourhoods", "Feasible"),
    "Problems": ("problem", "Problem"),
}
"""Headings of the Python page; names that stand in none of them are sorted by their first letters below."""

ELSEWHERE = {
    "Peers": ("peers.Peer", "peers.Keys", "peers.keygen", "peers.load_keys", "peers.new_keys", "peers.Patience"),
    "Channels": ("channels.Channel", "channels.Stage"),
    "Other frameworks": (
        "integrations.server.ServerRule",
        "integrations.flower.Robust",
        "integrations.nvflare.RobustAggregator",
    ),
}
"""What a script imports from a package of ours instead of `bm`."""


def _api() -> str:
    import byzmesh

    names = [name for name in byzmesh.__all__ if name not in ("__version__", "torch")]
    rest = [name for name in names if all(name not in group for group in GROUPS.values())]
    groups = {
        **GROUPS,
        "Your own parts": [name for name in rest if name.startswith("register_")],
        "Listings": [name for name in rest if name.startswith("list_")],
        "Parts and messages": [name for name in rest if not name.startswith(("register_", "list_"))],
    }
    lines = ["# Python", "", "```python\nimport byzmesh as bm\n```", ""]
    for heading, group in groups.items():
        lines += [f"## {heading}", ""]
        for name in group:
            lines += [f"::: byzmesh.{name}", ""]
    for heading, elsewhere in ELSEWHERE.items():
        lines += [f"## {heading}", ""]
        for name in elsewhere:
            lines += [f"::: byzmesh.{name}", "    options:", "      show_root_full_path: true", ""]
    lines += ["## PyTorch modules", "", "::: byzmesh.torch", "    options:", "      show_root_heading: false", ""]
    lines += ["## Version", "", "`bm.__version__` is the version as a string.", ""]
    return "\n".join(lines)


def _wire() -> str:
    from byzmesh.channels import base
    from byzmesh.peers import wire

    return "\n\n".join(
        (
            "# Wire format",
            markdown_of(wire.__doc__),
            "The code: [`wire.py`](../../src/byzmesh/peers/wire.py). Who may send what, and what happens to a message "
            "that is refused: [peers](../peers.md).",
            "## Payload",
            markdown_of(base.__doc__),
            "Every stage and its bytes: [channel stages](stages.md). The network file: "
            "[peers](../peers.md#the-network-file).",
        )
    )
