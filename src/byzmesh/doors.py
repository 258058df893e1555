"""Decorators to register your own parts: they give a function a name for configs, commands and peers.

A decorated function makes the part, and its parameters are the options that users write. In an installed package an
entry point does the same (group `byzmesh.rules`, `byzmesh.attacks`, ...). docs/extending.md has an example of each.

A run is stored under its config and the source of such functions (`byzmesh.config.identity`): if you edit one, its runs
are computed again. With `revision`, a number from 1, the source does not count: runs are computed again when the number
changes. Use it for code that Python cannot inspect (a library opened with ctypes), and for edits that you know to
change no result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Door(Protocol):
    """A decorator that returns the function it was given; type checkers keep the function's type."""

    def __call__(self, function: F, /) -> F: ...


def register_rule(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns a `Rule`, or that is one: (own, received, weights, f) -> vector.

    The parameters of the first form, and those of the second after f, are the rule's options. A function of the second
    form is called receiver by receiver: good for trying an idea, slow for large runs.

    `revision`, if given, identifies the code instead of its source: see `byzmesh.doors`.

    >>> import byzmesh as bm, numpy as np
    >>> @bm.register_rule("half-and-half")
    ... def half_and_half(own: float = 0.5):
    ...     "Its own model and the plain mean of the neighbours."
    ...     def coefficients(block):
    ...         near = block.present.astype(float)
    ...         near[:, 0] = 0.0
    ...         out = (1 - own) * near / np.maximum(near.sum(axis=1, keepdims=True), 1.0)
    ...         out[:, 0] = 1.0 - out.sum(axis=1)
    ...         return out
    ...     return bm.gram_rule("half-and-half", coefficients, options={"own": own})
    >>> bm.aggregate("half-and-half", np.zeros(1), np.ones((2, 1)), own=0.25)
    array([0.75])
    >>> @bm.register_rule("towards")
    ... def towards(own, received, weights, f, share: float = 0.5):
    ...     "A step towards the neighbours' mean."
    ...     return own + share * (received.mean(axis=0) - own)
    >>> bm.aggregate("towards", np.zeros(1), np.ones((2, 1)), share=0.25)
    array([0.25])
    """
    import byzmesh.rules.plain  # noqa: F401
    from byzmesh.rules.base import rules as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_attack(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns an `Attack`, or that is one: (own, received) -> vector.

    The second form gets the victim's model and those of its honest neighbours, and returns what the liars tell that
    victim (None: nothing). Further parameters are options.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm, numpy as np
    >>> @bm.register_attack("away")
    ... def away(own, received, scale: float = 1.0):
    ...     "Push the victim away from its neighbours."
    ...     return own + scale * (own - received.mean(axis=0))
    >>> net = bm.network("paper/two-castle")
    >>> bm.forge("away", net, np.arange(10.0)[:, None], scale=2.0)[7, 0].round(3)
    array([-9.75])
    >>> @bm.register_attack("first-model")
    ... def first_model():
    ...     "Everybody is told the model of the first honest worker."
    ...     def forge(view, state):
    ...         scene = view.scene
    ...         row = np.zeros(len(scene.liar), int)
    ...         return bm.Forged(scene.liar, scene.victim, row, view.models, rows=view.models[:1]), state
    ...     return bm.Attack("first-model", forge)
    >>> bm.forge("first-model", net, np.arange(10.0)[:, None])[7, 0]
    array([0.])
    """
    import byzmesh.attacks.plain  # noqa: F401
    from byzmesh.attacks.base import attacks as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_topology(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns a networkx graph on 0 .. n-1.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm, networkx
    >>> @bm.register_topology("wheel")
    ... def wheel(n: int):
    ...     "A hub joined to a ring."
    ...     return networkx.wheel_graph(n)
    >>> bm.network("wheel", n=5, byzantine=[3]).degree.tolist()
    [4, 3, 3, 3, 3]
    """
    from byzmesh.networks.topologies import topologies as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_process(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns a `bm.Process`: what happens to a network from round to round.

    `bind` sees the network once and returns the step from a round as it is so far to the round as it will be.
    `revision` is as for `register_rule`.

    >>> import byzmesh as bm
    >>> from byzmesh.networks.processes import Meetings
    >>> @bm.register_process("every-other")
    ... def every_other() -> bm.Process:
    ...     "The network in even rounds, nobody's links in odd ones."
    ...     silent = bm.process("link-loss", p=1.0)[0]
    ...     def bind(ground):
    ...         lose = silent.bind(ground)
    ...         return lambda meeting, round: lose(meeting, round) if round % 2 else meeting
    ...     return bm.Process("every-other", bind)
    >>> rounds = Meetings(bm.process("every-other"), bm.network("ring", n=5).links)
    >>> [int(rounds.at(number).links.degree.sum()) for number in range(3)]
    [10, 0, 10]
    """
    from byzmesh.networks.processes import processes as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_weights(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function from the (n, n) adjacency to (n, n) mixing weights whose rows sum to 1.

    If its argument is called `links` instead, it gets `byzmesh.networks.Links` and returns the weight of each link
    (E,), which works for networks of any size. `revision` is as for `register_rule`.

    >>> import byzmesh as bm, numpy as np
    >>> @bm.register_weights("mostly-own")
    ... def mostly_own(adjacency):
    ...     "0.9 for its own model, the rest for the neighbours in equal parts."
    ...     return 0.1 * adjacency / adjacency.sum(axis=1, keepdims=True) + 0.9 * np.eye(len(adjacency))
    >>> bm.network("ring", n=5, weights="mostly-own").mixing[0].tolist()
    [0.9, 0.05, 0.0, 0.0, 0.05]
    """
    from byzmesh.networks.weights import schemes as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_problem(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns a `Problem`, whose `bind` gives a `byzmesh.problems.base.Task`.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm
    >>> @bm.register_problem("steep")
    ... def steep(curvature: float = 9.0):
    ...     "Quadratics with a larger curvature."
    ...     inner = bm.problem("quadratic", curvature=curvature)
    ...     return bm.Problem("steep", {"curvature": curvature}, inner.binder)
    >>> ring = {"name": "ring", "n": 5}
    >>> bm.simulate(problem="steep", network=ring, rounds=3, step=0.1).status
    'finished'
    """
    from byzmesh.problems.base import problems as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_partition(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns (labels, workers, generator) -> one array of sample numbers per worker.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm, numpy as np
    >>> @bm.register_partition("interleaved")
    ... def interleaved():
    ...     "Sample i goes to worker i mod N."
    ...     return lambda labels, workers, generator: [np.arange(n, len(labels), workers) for n in range(workers)]
    >>> bm.problem("softmax", partition="interleaved").options["partition"]
    'interleaved'
    """
    from byzmesh.problems.data.partition import partitions as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_schedule(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns round -> step size.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm, math
    >>> @bm.register_schedule("cosine")
    ... def cosine(a: float = 0.1, period: float = 1000.0):
    ...     "From a down to 0 in `period` rounds."
    ...     return lambda k: a * (1 + math.cos(math.pi * min(k / period, 1.0))) / 2
    >>> ring = {"name": "ring", "n": 5}
    >>> run = bm.simulate(problem="quadratic", network=ring, rounds=3, step={"name": "cosine", "a": 0.5})
    >>> run.config["step"]
    {'name': 'cosine', 'a': 0.5, 'period': 1000.0}
    """
    from byzmesh.training.schedules import schedules as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_module(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns a fresh torch module.

    `shape` (of a sample) and `classes` are filled in from the data if the function has such parameters.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm
    >>> @bm.register_module("bottleneck")
    ... def bottleneck(width: int = 8, shape=(1, 28, 28), classes: int = 10):
    ...     "Two layers with few units between."
    ...     import math, torch
    ...     nn = torch.nn
    ...     return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), width), nn.Linear(width, classes))
    >>> bm.problem("torch", module={"name": "bottleneck", "width": 4}).options["module"]
    {'name': 'bottleneck', 'width': 4}
    """
    from byzmesh.problems.neural.modules import modules as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_augmentation(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a function that returns a `byzmesh.problems.neural.augment.Augmentation`.

    `revision` is as for `register_rule`.

    >>> import byzmesh as bm
    >>> from byzmesh.problems.neural.augment import Augmentation
    >>> @bm.register_augmentation("darken")
    ... def darken(most: float = 0.5):
    ...     "Take away up to `most` of the brightness."
    ...     return Augmentation(1, lambda images, draws: images * (1 - most * draws[..., None, None]))
    >>> bm.problem("torch", augment=["darken"]).options["augment"]
    [{'name': 'darken', 'most': 0.5}]
    """
    from byzmesh.problems.neural.augment import augmentations as registry

    return registry.register(name, aliases=aliases, revision=revision)


def register_stage(name: str, *, aliases: tuple[str, ...] = (), revision: int | None = None) -> Door:
    """Decorator for a `byzmesh.channels.Stage`: a stage of channels, in the simulator and between peers.

    A frozen dataclass whose fields are its options. How many bytes and numbers a message has may depend only on how
    many numbers come in. `revision` is as for `register_rule`.

    >>> import byzmesh as bm, numpy as np
    >>> from dataclasses import dataclass
    >>> from byzmesh.channels import Channel, Stage
    >>> @bm.register_stage("signs")
    ... @dataclass(frozen=True, repr=False)
    ... class Signs(Stage):
    ...     "One bit per coordinate."
    ...     name = "signs"
    ...     def sizes(self, width):
    ...         return -(-width // 8), 0
    ...     def send(self, values, context):
    ...         return np.packbits(values >= 0, axis=1), values[:, :0]
    ...     def receive(self, data, values, width, context):
    ...         return np.where(np.unpackbits(data, axis=1)[:, :width], 1, -1).astype(context.dtype)
    >>> channel, ids = Channel("signs", dimension=3), np.array([7])
    >>> channel.receive(channel.send(np.array([[0.3, -2.0, 5.0]]), (None,), 0, ids), (None,), 0, ids)[0]
    array([[ 1., -1.,  1.]], dtype=float32)
    """
    from byzmesh.channels import stages as registry

    return registry.register(name, aliases=aliases, revision=revision)
