"""The keys of a run's config as a page: from the schema, its docstring and the profiles."""

from __future__ import annotations

import json
import re
from typing import Any

from docstrings import markdown_of

NOTES = {
    "problem": "what is learned: [problems](problems.md)",
    "network": "who is linked, [topologies](topologies.md), who lies (`byzantine`), and [`weights`](weights.md)",
    "rule": "how a worker aggregates: [rules](rules.md)",
    "attack": "what liars say: [attacks](attacks.md)",
    "f": "how many neighbours of a worker lie: a number, one per honest worker, `exact`, `max`, `tolerable`, or "
    "`{name: quantile, delta: 0.05}` with a process",
    "b": "instead of f: how much the lying neighbours weigh at most",
    "rounds": "how many",
    "evaluate_every": "rounds between two evaluations",
    "step": "the step size, a number or a schedule: [step sizes](schedules.md)",
    "local": "the local update, see below",
    "seed": "of every draw",
    "dtype": "`float32` or `float64`",
    "threads": "of the linear algebra",
    "measure": "further metrics: [metrics](metrics.md)",
    "process": "how the network changes: [processes](processes.md)",
    "channel": "what happens to a model on its way: [channel stages](stages.md)",
    "labels": "your own names for this run, as columns of tables",
    "plugins": "scripts or modules with parts of your own",
    "profile": "a named set of defaults, see below",
}


def config_page() -> str:
    """All keys, the options of `local`, and the profiles."""
    from byzmesh.config import schema
    from byzmesh.training.profiles import PROFILES

    defaults = schema.resolve({"network": {"name": "ring", "n": 10}})
    rows = []
    for key in schema.KEYS:
        default = (
            "required"
            if key == "network"
            else f"`{_flow(defaults[key])}`"
            if defaults.get(key) not in (None, [], {})
            else ""
        )
        told = NOTES.get(key) or _told(schema.__doc__ or "", key)
        rows.append(f"| `{key}` | {told} | {default} |")
    known = json.dumps(schema.RunConfig.model_json_schema(), indent=2)
    return "\n\n".join(
        (
            "# Config",
            markdown_of(schema.__doc__),
            "`byzmesh show CONFIG` prints a config with every default written out. An unknown key is an error that "
            "names the nearest one.",
            "## Keys",
            "| key | meaning | default |\n| --- | --- | --- |\n" + "\n".join(rows),
            "## The local update",
            _local(),
            "## Profiles",
            "What a config that names none of these keys gets. `published` selects the options behind the published "
            "numbers for problem, rule and attack.",
            "\n\n".join(f"```yaml\n# profile: {name}\n{_lines(options)}\n```" for name, options in PROFILES.items()),
            "## JSON schema",
            "Of the canonical form, in which every part is a mapping with `name`.",
            f"```json\n{known}\n```",
        )
    )


def _told(text: str, key: str) -> str:
    """What the schema's own docstring says of a key: `key: example   what it means`.

    >>> _told("Keys.\\n\\n    b: 0.25    how much lies weigh\\n", "b")
    'how much lies weigh'
    """
    found = re.search(rf"^ +{key}: +\S.*? {{2,}}(\S.*)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"config key {key!r} has no words: add a line for it to the docstring of config/schema.py")
    return found[1]


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _lines(options: dict[str, Any]) -> str:
    return "\n".join(
        f"{key}: {_flow(dict(value) if hasattr(value, 'keys') else value)}" for key, value in options.items()
    )


def _local() -> str:
    import ast
    import inspect
    from dataclasses import MISSING, fields
    from itertools import pairwise

    from byzmesh.training import local

    body = ast.parse(inspect.getsource(local.LocalOptions)).body[0].body  # type: ignore[attr-defined]
    told: dict[str, str] = {}
    for statement, follower in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(follower, ast.Expr):
            told[statement.target.id] = follower.value.value  # type: ignore[union-attr, attr-defined]
    rows = []
    for field in fields(local.LocalOptions):
        default = "" if field.default is MISSING else f"`{_flow(field.default)}`"
        rows.append(f"| `{field.name}` | {told.get(field.name, '')} | {default} |")
    return markdown_of(local.__doc__) + "\n\n| option | meaning | default |\n| --- | --- | --- |\n" + "\n".join(rows)
