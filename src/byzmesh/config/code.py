"""The code and data of a run that are part of its identity: part -> text.

    rule mine               hash of its source, for a part that a user registered (config.identity); "revision 3" if
                            that was given
    rule RTC                "revision 2", for a part of byzmesh whose results changed since the first release
    byzmesh                 "revision 2", likewise for code that all runs use: rounds, draws, data sets, local steps
    data file flowers.csv   hash of the contents of a file that an option names

Parts of byzmesh at their first revision are not listed, nor are data sets given by name: the code of most runs is
empty, and their key is that of their config alone, as it was before code had an identity. So a new version of byzmesh
by itself computes nothing again and hides nothing. A revision does: it goes up with the change that gives other
results, and only affects runs that use that part. tests/test_bit_for_bit.py notices such a change for the rules and
attacks of its cells.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from byzmesh._version import REVISION
from byzmesh.attacks.base import attacks
from byzmesh.channels import stages
from byzmesh.config.changes import UNSEEN, changes
from byzmesh.config.identity import DIGITS, identity
from byzmesh.errors import ByzmeshError, ChangedCode
from byzmesh.networks.processes import processes
from byzmesh.networks.topologies import topologies
from byzmesh.networks.weights import schemes
from byzmesh.plugins import load_plugins
from byzmesh.problems.base import problems
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.neural.augment import augmentations
from byzmesh.problems.neural.lora import adapters
from byzmesh.problems.neural.modules import find, modules
from byzmesh.registry import Registry
from byzmesh.rules.base import rules
from byzmesh.training.metrics import metrics
from byzmesh.training.schedules import schedules

DATA = "data file"
BLOCK = 1 << 20
_read: dict[int, tuple[Any, str | None]] = {}
"""id of a factory -> itself (so that no other gets its id) and its identity when a run with it was last planned."""


class CodeReader:
    """Reads the code of configs; each part is read once, so that planning ten thousand runs is fast.

    >>> from byzmesh.config.schema import resolve
    >>> CodeReader().of(resolve({"network": {"name": "ring", "n": 5}, "rule": "IOS"}))
    {}
    """

    def __init__(self, *, as_planned: bool = False) -> None:
        """as_planned: take code in memory as this process first read it, whatever it has since put into its caches."""
        self._as_planned = as_planned
        self._parts: dict[tuple[str, str], str | None] = {}
        self._plugins: set[str] = set()

    def of(self, config: Mapping[str, Any]) -> dict[str, str]:
        """The code of a canonical config."""
        missing = set(config.get("plugins", ())) - self._plugins
        self._plugins.update(load_plugins(sorted(missing)))
        code = {} if REVISION == 1 else {"byzmesh": f"revision {REVISION}"}
        for registry, name in _parts(config):
            entry = (registry.kind, name)
            if entry not in self._parts:
                self._parts[entry] = _entry_code(registry, name, self._as_planned)
            if (known := self._parts[entry]) is not None:
                code[f"{registry.kind} {name}"] = known
        for part in ("problem", "rule", "attack"):
            code |= _data(config[part], config[part].get("data_dir"))
        return dict(sorted(code.items()))


def check_code(config: Mapping[str, Any], planned: Mapping[str, str]) -> None:
    """Raise `ChangedCode` unless this process has the code that the run was planned with."""
    changed = changes(_seen(planned), _seen(CodeReader(as_planned=True).of(config)))
    if changed:
        raise ChangedCode(
            f"{', '.join(changed)} since this run was planned; start the sweep again, "
            "with the same code and data on all machines"
        )


def _seen(code: Mapping[str, str]) -> dict[str, str]:
    """The code without the parts that differ only by process."""
    return {part: text.partition(UNSEEN)[0] for part, text in code.items()}


def _parts(config: Mapping[str, Any]) -> Iterator[tuple[Registry[Any], str]]:
    """The registered parts that a config names."""
    for key, registry in (("rule", rules), ("attack", attacks)):
        yield from ((registry, name) for name in _names(config[key]))
    problem, network = config["problem"], config["network"]
    yield problems, problem["name"]
    if isinstance(problem.get("partition"), Mapping):
        yield partitions, problem["partition"]["name"]
    if isinstance(problem.get("module"), Mapping):
        yield modules, problem["module"]["name"]
    optimizer = config["local"].get("optimizer", {}).get("name", "")
    if ":" in optimizer:  # found like a module's function
        yield modules, optimizer
    if isinstance(problem.get("adapter"), Mapping):
        yield adapters, problem["adapter"]["name"]
    for augmentation in problem.get("augment", ()):
        yield augmentations, augmentation["name"]
    if "name" in network:
        yield topologies, network["name"]
    if isinstance(network.get("weights"), str):
        yield schemes, network["weights"]
    for part in config.get("process", ()):
        yield processes, part["name"]
    for part in config.get("channel", ()):
        yield stages, part["name"]
    yield schedules, config["step"]["name"]
    for name in config["measure"]:
        yield metrics, name


def _names(spec: Any) -> Iterator[str]:
    """The name in a spec and in those within its options: a rule around another one."""
    if isinstance(spec, Mapping):
        if isinstance(spec.get("name"), str):
            yield spec["name"]
        for option in spec.values():
            yield from _names(option)
    elif isinstance(spec, list):
        for item in spec:
            yield from _names(item)


def _entry_code(registry: Registry[Any], name: str, as_planned: bool) -> str | None:
    """The identity of a registered part: its revision if it has one; None for byzmesh's own parts at the first."""
    try:
        if registry is modules and ":" in name:
            return _identity(find(name), as_planned)
        entry = registry.entry(name)
    except ByzmeshError:
        return None  # given as an object: registered nowhere, a lambda, an inner function
    return _identity(entry.factory, as_planned) if entry.revision is None else f"revision {entry.revision}"


def _identity(factory: Any, as_planned: bool) -> str | None:
    if not as_planned or id(factory) not in _read:
        _read[id(factory)] = (factory, identity(factory))
    return _read[id(factory)][1]


def _data(options: Mapping[Any, Any], folder: Any) -> dict[str, str]:
    """The files that the options of a part name."""
    files: dict[str, str] = {}
    for value in options.values():
        if isinstance(value, list):
            files |= _data(dict(enumerate(value)), folder)
        elif isinstance(value, Mapping):
            files |= _data(value, folder)
        elif isinstance(value, str) and "." in Path(value).name:
            files |= _file_code(value, folder)
    return files


def _file_code(name: str, folder: Any) -> dict[str, str]:
    """The hash of a file that an option names, looked up as problems do; empty if there is none."""
    path = Path(name).expanduser()
    if isinstance(folder, str):
        path = Path(folder).expanduser() / path
    try:
        state = path.stat()
        if not path.is_file():
            return {}
        return {f"{DATA} {name}": _digest(str(path.absolute()), state.st_size, state.st_mtime_ns)}
    except (OSError, ValueError):
        return {}


@functools.lru_cache(maxsize=1024)
def _digest(path: str, size: int, changed: int) -> str:
    """Hash of a file; the other arguments distinguish two states of it in the cache."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()[:DIGITS]
