"""All rules that are asked: ours, those that other packages bring, and those of the user's folders."""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from pathlib import Path

from syncscope.errors import UserError
from syncscope.opencl_c import rules as kernel_rules
from syncscope.rules import Paged, Rule, builtin, claims, family, from_folder, installed

_BROKEN: dict[tuple[str, ...], tuple[UserError, ...]] = {}  # by the folders of a ruleset, as it was last loaded


@cache
def ruleset(folders: tuple[str, ...]) -> dict[str, Rule]:
    """All rules by name: ours, those other packages bring, and those in the user's folders that can be loaded."""
    found = builtin() | installed()
    wrong: list[UserError] = []
    for folder in folders:
        found |= from_folder(Path(folder), wrong)
    _BROKEN[folders] = tuple(wrong)
    return found


def broken(folders: tuple[str, ...]) -> tuple[UserError, ...]:
    """What is wrong with those of the user's rules that cannot be asked."""
    if folders:
        ruleset(folders)
    return _BROKEN.get(folders, ())


@cache
def claimants(folders: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Which rules claim which op."""
    return claims(ruleset(folders))


@cache
def pages(folders: tuple[str, ...]) -> dict[str, Paged]:
    """All that has a name and a page: the rules of Python, and those of OpenCL C and its host programs."""
    return {**ruleset(folders), **kernel_rules.builtin()}


@cache
def selectable(folders: tuple[str, ...]) -> tuple[str, ...]:
    """What names rules: each by its own, those of a family by that, all by ALL."""
    rules = pages(folders)
    return tuple(sorted({*rules, *(family_slug(name, folders) for name in rules), "ALL"}))


@cache
def family_slug(name: str, folders: tuple[str, ...]) -> str:
    """The slug of a rule's family, as `select` takes it."""
    rule = ruleset(folders).get(name) or kernel_rules.builtin().get(name)
    return slug(family(rule).value, pages(folders)) if rule else ""


def slug(of_family: str, rules: Container[str]) -> str:
    """How a family is named where rules are: a name that is a rule's means that rule alone, wherever it stands."""
    said = of_family.replace(" ", "-")
    return f"{said}-family" if said in rules else said
