"""The pytest plugin as it is installed: the recorder's, with what the linter has to say of a line that waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from syncscope.tracers import pytest_plugin as recorder

if TYPE_CHECKING:
    from syncscope.model.source import Place


def pytest_configure(config: pytest.Config) -> None:
    """Gives the recorder's plugin, which knows no rules, whom to ask."""
    config.stash[recorder.ADVISE] = _advice
    if not config.pluginmanager.is_registered(recorder):
        config.pluginmanager.register(recorder)


def _advice(op: str, place: Place) -> str:
    from syncscope.api import linted  # most tests ask nothing

    return linted.advice(op, place)
