"""syncscope config: the whole configuration of the linter, with what holds here and what each key is for."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from syncscope.cli._console import echo

MEANS = {
    "select": "rules or families; empty is all",
    "ignore": "rules or families that are off",
    "per-file-ignores": 'rules that are off in some files: { "tests/**" = ["ALL"] }',
    "exclude": "files and folders that are left out; patterns as in .gitignore",
    "force-exclude": "leave them out also where they are named one by one, as pre-commit does",
    "rules": "folders of your own rules; `syncscope trust` lets them run",
    "min-confidence": "how sure it must be that a value is a tensor on a device: low, medium or high",
    "all": "cold code too: set-up, evaluation, guarded logging",
    "backend": '"ocl": also what falls back to the CPU on that device',
    "baseline": "findings that you live with: a file that --write-baseline wrote",
    "hot": "functions that run in every step, though no step is here: FILES, or FILES:FUNCTIONS",
    "cold": "functions that run in no step, though the linter takes them for part of one; said in the same way",
    "respect-gitignore": "leave out what git ignores",
    "src": "folders in which imports of your own are looked up",
}


@click.command(short_help="The configuration file, whole, with its defaults.")
@click.argument("folder", default=".", type=click.Path(exists=True, file_okay=False))
def command(folder: str) -> int:
    """Print the table for a pyproject.toml that says what holds for FOLDER (default: this one), every key with its meaning.

    \b
    syncscope config                     what holds here, and from which file
    syncscope config >> pyproject.toml   begin with all of it, and change what you like

    A key that is left out has its default; a key at its default stands behind a #.
    """
    from syncscope.linter.config import KEYS, Config, Configs, shown

    config, default = Configs().of(folder), Config()
    echo(
        f"# from {shown(config.file)}" if config.file else "# no pyproject.toml has this table: these are the defaults"
    )
    echo("[tool.syncscope.lint]")
    for key, field in KEYS.items():
        value = getattr(config, field.name)
        unused = "# " * (value == getattr(default, field.name))
        echo(f"{unused}{key} = {_toml(_as_written(key, value, config.root))}  # {MEANS[key]}")
    return 0


def _as_written(key: str, value: Any, root: str) -> Any:
    """A value as the file would hold it: paths from where the file lies, patterns with their rules as a table."""
    if key in ("rules", "src"):
        return tuple(os.path.relpath(path, root) for path in value)
    if key == "baseline" and value:
        return os.path.relpath(value, root)
    return dict(value) if key == "per-file-ignores" else value


def _toml(value: Any) -> str:
    """A value of the configuration in TOML, whose texts, lists and truth values are those of JSON."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{_toml(name)} = {_toml(rules)}" for name, rules in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return json.dumps(value, ensure_ascii=False)
