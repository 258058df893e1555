"""Examples of registered parts, computed when the site is built: what they show is what the code does."""

from __future__ import annotations

import contextlib
from typing import Any

OF_A_RULE = {
    "SimRew": ", previous=[-0.5, -0.5]",
    "ByRDiE": ", previous=[0.0, 0.0]",
    "push-sum": ", previous=[0.0, 0.0]",
    "UBAR": ", loss=lambda x: abs(x[0] - 1.0)",
    "Zeno": ", loss=lambda x: abs(x[0] - 1.0)",
}
"""What `aggregate` needs besides, by rule."""
OF_A_PROCESS = {"churn": ", up=3, down=2", "schedule": ", edges=[[[0, 1], [2, 3]], [[1, 2], [3, 0]]]"}
"""Options that show something within four rounds."""


def session(source: str) -> str:
    """One-line statements as in a Python session, each followed by what it shows.

    >>> print(session("a = 2\\na + 1  # one more"))
    >>> a = 2
    >>> a + 1  # one more
    3
    """
    import numpy as np

    import byzmesh as bm

    names: dict[str, Any] = {"bm": bm, "np": np}
    lines = []
    for line in source.split("\n"):
        lines.append(f">>> {line}")
        try:
            shown = eval(line, names)
        except SyntaxError:
            exec(line, names)
        else:
            lines += [] if shown is None else [repr(shown)]
    return "\n".join(lines)


def example_of(kind: str, name: str) -> str:
    """The part at work, as a session; empty for kinds and parts that need more than a few numbers."""
    from byzmesh.errors import ConfigError

    sources = {"rules": _rule, "attacks": _attack, "processes": _process, "stages": _stage, "weights": _weights}
    for source in sources[kind](name) if kind in sources else []:
        with contextlib.suppress(ConfigError, KeyError):  # an attack that needs a rule, a message that was not sent
            return session(source)
    return ""


def _rule(name: str) -> list[str]:
    return [
        "import byzmesh as bm\n"
        "received = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5], [0.5, 0.0], [90.0, 90.0]]\n"
        f'bm.aggregate("{name}", [0.0, 0.0], received, f=1{OF_A_RULE.get(name, "")}).round(3)'
    ]


def _attack(name: str) -> list[str]:
    """One message; where none is sent, how many are; where the rule is needed, what a run comes to."""
    import byzmesh as bm

    models = (
        'import byzmesh as bm, numpy as np\nnet, models = bm.network("paper/two-castle"), np.arange(10.0)[:, None]\n'
    )
    forged = f'bm.forge("{name}", net, models)'
    run = (
        "import byzmesh as bm\n"
        'job = {"problem": "noisy-quadratic", "network": "paper/two-castle", "rounds": 50}\n'
        'round(bm.simulate(**job, attack="none").final("loss"), 3)\n'
        f'round(bm.simulate(**job, attack="{name}").final("loss"), 3)'
    )
    if not bm.attack(name).needs_response or bm.attack(name).needs_data:
        run = ""
    sources = [f"{models}{forged}[7, 0]  # what worker 7 tells worker 0", f"{models}len({forged})  # messages", run]
    return list(filter(None, sources))


def _process(name: str) -> list[str]:
    shown = "rounds.at(k).age.tolist()[:5]" if name == "late" else "rounds.at(k).links.of(0).tolist()"
    told = "how old what worker 0 hears is" if name == "late" else "whom worker 0 hears"
    return [
        "import byzmesh as bm\nfrom byzmesh.networks.processes import Meetings\n"
        f'rounds = Meetings(bm.process("{name}"{OF_A_PROCESS.get(name, "")}), bm.network("complete", n=6).links)\n'
        f"[{shown} for k in range(4)]  # {told}"
    ]


def _stage(name: str) -> list[str]:
    return [
        "import numpy as np\nfrom byzmesh.channels import Channel\n"
        "models, ids = np.array([[0.1, -2.0, 3.0, 0.5]], np.float32), np.arange(1)\n"
        f'channel = Channel("{name}", dimension=4)\n'
        "before = channel.start(0 * models)\n"
        "channel.receive(channel.send(models, before, 0, ids), before, 0, ids)[0]  # what arrives"
    ]


def _weights(name: str) -> list[str]:
    return [f'import byzmesh as bm\nbm.network("star", n=4, weights="{name}").mixing.round(3)']
