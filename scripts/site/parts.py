"""Reference pages of registered parts: every rule, attack, topology, ... with definition, options and an example."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import Any

from docstrings import WIDEST, blocks_of, formula, is_code, rendered

from examples import example_of

ROOT = Path(__file__).parents[2]
KINDS = {
    "rules": ("Rules", "How a worker aggregates what it hears.", "rule"),
    "attacks": ("Attacks", "What liars say.", "attack"),
    "topologies": ("Topologies", "Who is linked to whom.", "network"),
    "weights": ("Mixing weights", "How much a message counts when nobody is cut.", "network"),
    "processes": ("Processes", "How a network changes from round to round.", "process"),
    "stages": ("Channel stages", "What happens to a model on its way.", "channel"),
    "problems": ("Problems", "What is learned.", "problem"),
    "partitions": ("Partitions", "Who gets which data.", "problem"),
    "modules": ("Modules", "Architectures for problem `torch`.", "problem"),
    "augmentations": ("Augmentations", "Random changes of training images.", "problem"),
    "schedules": ("Step sizes", "The step size of every round.", "step"),
    "metrics": ("Metrics", "What a run records.", "measure"),
}
"""Kind -> title, one sentence, and the key of a config that names such a part."""
REQUIRED = {"n": 10, "k": 4, "rows": 3, "columns": 4, "clique": 6, "tail": 4}
"""Values of required options in examples."""
SHARED = 4
"""A module's docstring stands beside each part if it defines at most so many of them and others too; on top of the page
if it defines all of them, or more and has formulas."""
CITED = re.compile(r"\b(?:19|20)\d\d\b")
STEPS = (0, 1, 10, 100, 1000)
"""Rounds whose step size is shown."""


def title(kind: str) -> str:
    """Of the page."""
    return KINDS[kind][0]


def overview(kind: str) -> str:
    """One sentence, with how many there are."""
    return f"{KINDS[kind][1]} {len(_entries(kind))} of them."


def _entries(kind: str) -> list[Any]:
    from byzmesh.catalogue import registries

    return list(registries()[kind].entries())


def page(kind: str) -> str:
    """The page of a kind."""
    from byzmesh.catalogue import everything

    entries, rows = _entries(kind), {row["name"]: row for row in everything(kind)}
    modules = Counter(_module(entry) for entry in entries)
    heading, sentence, _ = KINDS[kind]
    lines = [f"# {heading}", "", f"{sentence} `byzmesh list {kind}` prints this list, and your own parts with it.", ""]
    for module in modules:
        if _on_top(module, modules):
            lines += [_body(module), ""]
    facts = [
        field for field in ("feasible", "unit", "direction", "scale") if any(row.get(field) for row in rows.values())
    ]
    names = {"feasible": "f", "direction": "better"}
    lines += ["| name | " + " | ".join([*(names.get(field, field) for field in facts), "what it does"]) + " |"]
    lines += ["| --- |" + " --- |" * (len(facts) + 1)]
    for entry in entries:
        row = rows[entry.name]
        cells = [f"[{entry.name}](#{anchor(entry.name)})", *(str(row[field]) for field in facts), row["summary"]]
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    for entry in entries:
        lines += ["", _part(kind, entry, rows[entry.name], modules)]
    return "\n".join(lines) + "\n"


def anchor(name: str) -> str:
    """Of a part on its page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("+", "-plus")).strip("-")


def _cell(text: str) -> str:
    return text.replace("|", "&#124;").replace("<", "&lt;")


def _module(entry: Any) -> Any:
    return inspect.getmodule(inspect.unwrap(entry.factory))


def _on_top(module: Any, modules: Counter[Any]) -> bool:
    """Whether what a module says stands once, above its parts."""
    formulas = any(map(is_code, blocks_of(inspect.getdoc(module))))
    return formulas and (modules[module] > SHARED or 1 < modules[module] == modules.total())


def _body(module: Any) -> str:
    """What a module's docstring says after its first line, which says what the parts' own first lines say; a first line
    that cites somebody stays."""
    first, *rest = blocks_of(inspect.getdoc(module)) or [""]
    return rendered([first] * bool(CITED.search(first)) + rest)


def _told(factory: Any) -> tuple[str, list[str]]:
    """What a part's docstring says, and those of its examples that run anywhere; the others are for tests."""
    blocks = blocks_of(inspect.getdoc(factory))
    examples = [block for block in blocks if block.startswith(">>> ") and "import byzmesh" in block]
    text = [block for block in blocks if not block.startswith(">>> ")]
    return rendered(text), examples


def _part(kind: str, entry: Any, row: dict[str, Any], modules: Counter[Any]) -> str:
    module = _module(entry)
    text, examples = _told(entry.factory)
    blocks = [f"## {entry.name} {{#{anchor(entry.name)}}}", text]
    if lines := _formula(module, entry.name):
        blocks.append(f"```text\n{lines}\n```")
    elif modules[module] <= SHARED and not _on_top(module, modules):
        blocks.append(_body(module))
    facts = []
    if entry.aliases:
        facts.append("Also called " + ", ".join(f"`{alias}`" for alias in entry.aliases) + ".")
    if row.get("feasible"):
        facts.append(f"Condition on f with d neighbours (S = d + 1): {_cell(row['feasible'])}.")
    if entry.published:
        facts.append(
            "The published runs used other options: " + ", ".join(map(_published, entry.published.items())) + "."
        )
    blocks += [" ".join(facts)] if facts else []
    blocks += [_options(entry, row["options"])] if row["options"] else []
    blocks.append("```yaml\n" + _wrapped(example(kind, entry.name, row["options"])) + "\n```")
    if kind == "schedules":
        steps = ", ".join(f"{entry.factory()(k):.3g}" for k in STEPS)
        blocks.append(f"Steps of the rounds k = {', '.join(map(str, STEPS))}: {steps}.")
    blocks += [f"```pycon\n{shown}\n```" for shown in examples or [example_of(kind, entry.name)] if shown]
    if kind == "topologies":
        blocks.append(_drawn(entry.name, row["options"]))
    source = Path(inspect.getfile(inspect.unwrap(entry.factory))).relative_to(ROOT).as_posix()
    blocks.append(f"Source: [`{source.removeprefix('src/byzmesh/')}`](../../{source})")
    return "\n\n".join(filter(None, blocks))


def _wrapped(config: str) -> str:
    """A config whose mapping is too long for a line, one option a line.

    >>> print(_wrapped("problem: {name: x, " + "a: [1, 2], " * 9 + "b: 1}").split(chr(10))[:3])
    ['problem:', '  name: x', '  a: [1, 2]']
    """
    if len(config) <= WIDEST:
        return config
    key, _, options = config.partition(": {")
    return "\n".join([f"{key}:", *(f"  {option}" for option in re.split(r", (?=\w+: )", options.removesuffix("}")))])


def _published(option: tuple[str, Any]) -> str:
    name, value = option
    if hasattr(value, "iid"):
        return f"`{name}: {value.iid}` for iid data, otherwise `{value.other}`"
    return f"`{name}: {value}`"


def _formula(module: Any, name: str) -> str:
    """The lines about a part in a table of its module's docstring, `name   formula`."""
    for block in filter(is_code, blocks_of(inspect.getdoc(module))):
        lines = inspect.cleandoc(block).split("\n")
        for number, line in enumerate(lines):
            if re.match(rf"{re.escape(name)}  +\S", line):
                more = []
                for follower in lines[number + 1 :]:
                    if not follower.startswith("    "):
                        break
                    more.append(follower)
                return formula("\n".join([line, *more]))
    return ""


def _options(entry: Any, options: dict[str, Any]) -> str:
    types = {parameter.name: parameter.annotation for parameter in inspect.signature(entry.factory).parameters.values()}
    lines = ["| option | type | default |", "| --- | --- | --- |"]
    for name, default in options.items():
        annotation = types.get(name, "")
        shown = "" if annotation is inspect.Parameter.empty else str(getattr(annotation, "__name__", annotation))
        needed = entry.options[name] is inspect.Parameter.empty
        lines.append(f"| `{name}` | {_cell(shown)} | {'required' if needed else f'`{_yaml(default)}`'} |")
    return "\n".join(lines)


def _yaml(value: Any) -> str:
    """A default as one writes it in a config."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return str(value)


def example(kind: str, name: str, options: dict[str, Any]) -> str:
    """The part in a config, with its options written out.

    >>> example("rules", "CC", {"tau": 0.3})
    'rule: {name: CC, tau: 0.3}'
    """
    given = {
        option: REQUIRED[option] if option in REQUIRED and value is None else value for option, value in options.items()
    }
    words = ", ".join(
        [f"name: {name}", *(f"{option}: {_yaml(value)}" for option, value in given.items() if value is not None)]
    )
    part = f"{{{words}}}" if "," in words else name
    key = KINDS[kind][2]
    inside = {
        "weights": f"{{name: ring, n: 10, weights: {name}}}",
        "partitions": f"{{name: softmax, partition: {part}}}".replace("[1.0]", "[1, 1, 2, 4]"),
        "modules": f"{{name: torch, module: {part}}}",
        "augmentations": f"{{name: torch, augment: [{part}]}}",
        "processes": f"[{part}]",
        "stages": f"[{part}]",
        "metrics": f"[{name}]",
    }
    return f"{key}: {inside.get(kind, part)}"


def _drawn(name: str, options: dict[str, Any]) -> str:
    """A topology as SVG."""
    import byzmesh as bm
    from byzmesh.networks.svg import svg

    given = {option: REQUIRED[option] for option, value in options.items() if value is None and option in REQUIRED}
    return svg(bm.network(name, **given), width=210.0)
