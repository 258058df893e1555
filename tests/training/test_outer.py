"""Outer steps against PyTorch's own SGD on the pseudo-gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from byzmesh.errors import ConfigError, UnknownOption
from byzmesh.training.local import LocalOptions
from byzmesh.training.outer import Outer

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "heavy-ball": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_outer_step_is_sgd_on_pseudo_gradients(name: str) -> None:
    draw = np.random.default_rng(0)
    models = draw.standard_normal((3, 7))
    theirs = torch.nn.Parameter(torch.from_numpy(models.copy()))
    optimizer = torch.optim.SGD([theirs], lr=0.7, **OPTIONS[name])
    outer = Outer.of(name)
    velocity = outer.init(models)
    for _ in range(4):
        agreed = draw.standard_normal((3, 7))
        theirs.grad = theirs.detach() - torch.from_numpy(agreed)
        optimizer.step()
        models = outer.apply(models, agreed, velocity)
        np.testing.assert_allclose(models, theirs.detach().numpy(), rtol=1e-13, atol=1e-13)


def test_no_outer_step_takes_what_the_rule_returned() -> None:
    agreed = np.ones((2, 2))
    assert Outer().apply(np.zeros((2, 2)), agreed, None) is agreed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nestorov", "local outer must be"),
        ({"step": 0.1}, "a mapping with a name"),
        ({"name": "plain", "step": 0}, "local outer step"),
        ({"name": "nesterov", "beta": 1.0}, "local outer beta"),
    ],
)
def test_mistakes_are_named(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LocalOptions.of({"outer": given})


def test_an_option_that_would_do_nothing_is_an_error() -> None:
    with pytest.raises(UnknownOption, match="plain has no option 'beta'"):
        Outer.of({"name": "plain", "beta": 0.5})
