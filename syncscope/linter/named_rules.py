"""The names of rules and families in a configuration: each must mean something, and all of them together some rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from syncscope import discover
from syncscope.errors import UserError
from syncscope.linter import rulesets
from syncscope.linter.config import BUILT_IN, NOT_LINTED, Config, said_at
from syncscope.linter.trust import refused


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


def check_some(configs: Collection[Config]) -> None:
    """Whether any rule is asked at all: silence would be taken for there being no findings.

    Raises:
        UserError: none is, in no file.
    """
    if configs and not any(map(_asks_some, configs)):
        untrusted = [*refused(dict.fromkeys(folder for config in configs for folder in config.refused))]
        hint = "; ".join(untrusted) or "`select` names none that `ignore` does not take away: say other ones"
        raise UserError("no rule is on", hint)


def _asks_some(config: Config) -> bool:
    """Whether a rule is on; what says that a file was not linted is one only where somebody selects it."""
    families = partial(rulesets.family_slug, folders=config.rules)
    rules = (*rulesets.pages(config.rules), *BUILT_IN)
    return any(config.wants(rule, families) and (rule != NOT_LINTED or rule in config.select) for rule in rules)
