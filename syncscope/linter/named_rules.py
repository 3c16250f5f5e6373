"""The names of rules and families in a configuration: each must mean something."""

from __future__ import annotations

from collections.abc import Iterable

from syncscope import discover
from syncscope.errors import UserError
from syncscope.linter import rulesets
from syncscope.linter.config import BUILT_IN, Config, said_at


def check_names(configs: Iterable[Config]) -> None:
    """Whether every name in `select` and `ignore` means something.

    Raises:
        UserError: one does not; the hint is the nearest.
    """
    for config in configs:
        said = [*config.select, *config.ignore, *(r for _, off in config.per_file_ignores for r in off)]
        if said:
            choices = sorted({*rulesets.selectable(config.rules), *BUILT_IN})
            for name in said:
                # or it is of one not loaded
                if name not in choices and not (config.refused or rulesets.broken(config.rules)):
                    hint = discover.did_you_mean(name, choices, "`syncscope explain` lists them all")
                    raise UserError(f"{said_at(name, config)}no rule is called {name!r}", hint)
