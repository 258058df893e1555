"""Every certificate: each published network and each named topology of 5 to 40 nodes, with every rule.

None may end in an exception. Networks of an odd size name a liar, the others ask for one liar per neighbourhood
anywhere; the published ones are asked with their own liars. Counts are kept network by network in FILE.parts, so that a
study that was stopped continues where it was. REVISION names the code; parts of another revision are computed again.

    python -m byzmesh.studies.everything reports/soundness/everything.json $(git rev-parse --short HEAD)
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from byzmesh.errors import ConfigError
from byzmesh.files import write
from byzmesh.networks import Network, network
from byzmesh.networks.topologies import topologies
from byzmesh.rules.base import rules
from byzmesh.theory.certify import certify

SIZES = range(5, 41)
PARAMETERS: dict[str, Any] = {
    "k-regular": lambda n: {"n": n, "k": 4 if n > 5 else 2},
    "dumbbell": lambda n: {"k": n // 2, "bridge": n % 2},
    "two-castle": lambda n: {"k": n // 2},
    "octopus": lambda n: {"head": n // 2},
    "lollipop": lambda n: {"clique": n - n // 3, "tail": n // 3},
    "torus": lambda n: {"rows": 3, "columns": max(3, n // 3)},
    "two-worlds": lambda n: {"n": n - n % 2, "k": 1},
}
"""How a family is made of about n nodes, where it does not take n itself."""


def named_networks(sizes: Iterable[int] = SIZES) -> Iterator[Network]:
    """Every published network and every family at these sizes; sizes that a family does not have are left out."""
    topologies.load()
    for name in topologies.names():
        if not topologies.entry(name).options:
            yield network(name)
            continue
        for n in sizes:
            try:
                made = network(name, **PARAMETERS.get(name, lambda size: {"n": size})(n))
            except ConfigError:
                continue
            # liars anywhere are decided for links that go both ways
            yield made.with_byzantine([0]) if n % 2 or made.links.directed else made


def certify_everything(networks: Iterable[Network], names: Iterable[str], search: int = 20) -> dict[str, Any]:
    """Counts of answers, and the exceptions that should not be."""
    counts: Counter[str] = Counter()
    failed: list[str] = []
    chosen = list(names)
    for net in networks:
        for name in chosen:
            f = "exact" if len(net.byzantine) else 1
            try:
                told = certify(net, name, f, search=_budget(name, search))
                str(told)
                json.dumps(told.to_dict(), allow_nan=False)
                counts[told.verdict.status] += 1
            except Exception as error:  # whatever it is, it is what is looked for
                failed.append(f"{name} on {net!r}: {type(error).__name__}: {error}")
    return {"certificates": counts.total() + len(failed), "answers": dict(counts), "failed": failed}


def _budget(name: str, search: int) -> int:
    """No search for rules that look at more than the received models."""
    rule = rules.build(name)
    return 0 if rule.needs_previous or rule.needs_loss or rule.sends != "half" else search


def main(arguments: list[str]) -> int:
    """Certify everything and write the counts to a file; 1 if anything failed."""
    target, revision = Path(arguments[0]), arguments[1]
    rules.load()
    kept = target.with_name(target.name + ".parts")
    parts = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    parts = [part for part in parts if part["revision"] == revision]
    networks = list(named_networks())
    for net in networks[len(parts) :]:
        begun = time.process_time()
        told = certify_everything([net], rules.names())
        parts.append({"revision": revision, "seconds": time.process_time() - begun, **told})
        write(kept, "".join(json.dumps(part) + "\n" for part in parts))
    answers: Counter[str] = Counter()
    for part in parts:
        answers.update(part["answers"])
    failed = [text for part in parts for text in part["failed"]]
    told = {
        "revision": revision,
        "networks": len(networks),
        "rules": len(rules.names()),
        "certificates": sum(part["certificates"] for part in parts),
        "answers": dict(answers),
        "failed": failed,
        "cpu_minutes": round(sum(part["seconds"] for part in parts) / 60.0, 1),
    }
    write(target, json.dumps(told, indent=1) + "\n")
    kept.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
