"""What docs/stability.md promises is there: nothing in `golden/stable.json` is gone. `pytest --golden` adds what is new."""

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

import syncscope
from syncscope import cli, rules
from syncscope.linter.config import KEYS

ROOT = Path(__file__).parents[1]
STABLE = Path(__file__).parent / "golden" / "stable.json"


def options(command: click.Command) -> list[str]:
    names = (name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts))
    return sorted(name for name in names if name.startswith("-"))


def keys(schema: Any, within: str = "") -> set[str]:
    """Of a JSON Schema, as `reads.line`."""
    if isinstance(schema, list):
        return set().union(*(keys(part, within) for part in schema))
    if not isinstance(schema, dict):
        return set()
    found: set[str] = set()
    for name, part in schema.items():
        if name in ("properties", "$defs"):
            for key, value in part.items():
                found |= {within + key} | keys(value, f"{within}{key}.")
        elif name not in ("required", "enum", "description"):
            found |= keys(part, within)
    return found


def offered() -> dict[str, list[str]]:
    """By kind: what this version has."""
    context = click.Context(cli.commands)
    commands = {name: cli.commands.get_command(context, name) for name in cli.commands.list_commands(context)}
    return {
        **{f"syncscope {name}": options(command) for name, command in commands.items() if command},
        "rules": sorted(rules.builtin()),
        "keys of the configuration": sorted(KEYS),
        "names in Python": sorted(syncscope.__all__),
        "keys of JSON": sorted(keys(json.loads((ROOT / "docs" / "report-schema.json").read_text()))),
    }


def test_nothing_that_is_promised_is_gone(request: pytest.FixtureRequest) -> None:
    now = offered()
    promised: dict[str, list[str]] = json.loads(STABLE.read_text()) if STABLE.exists() else {}
    if request.config.getoption("--golden"):
        kinds = {kind: sorted({*promised.get(kind, ()), *names}) for kind, names in now.items()}
        STABLE.write_text(json.dumps(promised | kinds, indent=1) + "\n")
        return
    gone = {kind: sorted({*names} - {*now.get(kind, ())}) for kind, names in promised.items()}
    assert {kind: names for kind, names in gone.items() if names} == {}
    assert promised.keys() <= now.keys()
    assert now.keys() <= promised.keys(), "pytest --golden tests/test_stability.py adds it"


def test_the_numbers_of_forms_are_those_of_the_documents() -> None:
    """A form that changed is read by its number: who raises one says so on the page."""
    told = re.findall(r"the number of this form: (\d+)", (ROOT / "docs" / "json.md").read_text())
    written = [
        number
        for path in (ROOT / "syncscope").rglob("*.py")
        for number in re.findall(r"\"schema\": (\d+)", path.read_text())
    ]
    assert {*told} == {*written} == {"1"}
