"""Coverage traces what it should, and nothing else: tracing makes loops up to four times as slow."""

from __future__ import annotations

import sys

import pytest


def test_what_is_listed_as_untraced_is_not_traced() -> None:
    assert sys.gettrace() is None


def test_other_tests_are_traced_if_coverage_is_asked_for(pytestconfig: pytest.Config) -> None:
    assert (sys.gettrace() is not None) == pytestconfig.pluginmanager.hasplugin("_cov")
