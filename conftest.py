"""Examples in docstrings register parts of their own: they are forgotten after each example."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest


@pytest.fixture(autouse=True)
def _registrations_are_forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    with ExitStack() as stack:
        if isinstance(request.node, pytest.DoctestItem):
            from byzmesh.catalogue import registries

            for registry in registries().values():
                stack.enter_context(registry.temporary())
        yield
