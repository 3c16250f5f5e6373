"""`syncscope test-rules`: do rules keep what their examples promise."""

from __future__ import annotations

import click

from syncscope.cli._console import echo
from syncscope.errors import UserError


@click.command(short_help="Test your own rules by their examples.")
@click.argument("folders", nargs=-1)
@click.option(
    "--config", metavar="FILE", help="Take the folders of `rules` from this pyproject.toml instead of the nearest."
)
@click.option("--ops", is_flag=True, help="List the waits that OPS may name, and what each is.")
def command(folders: tuple[str, ...], config: str | None, ops: bool) -> int:
    """Test your own rules by their examples: the marked lines, and only they, are flagged, and the fix is as shown.

    FOLDERS hold rules, one .py each; without any, those that pyproject.toml and installed packages name.

    \b
    syncscope test-rules lint_rules/
    syncscope test-rules --ops
    """
    if ops:
        return list_ops()
    import os
    from pathlib import Path

    from syncscope import rules
    from syncscope.linter.config import Config, Configs, shown
    from syncscope.linter.examples import failures

    told = Configs(config or "").of("x.py")
    named = tuple(map(os.path.abspath, folders)) or told.rules
    if not folders and told.refused:
        where = " ".join(map(shown, told.refused))
        raise UserError(f"not trusted yet: {where}", f"read it, then: syncscope test-rules {where}")
    settings = Config(rules=named)
    own = {name: rule for folder in named for name, rule in rules.from_folder(Path(folder)).items()}
    if not folders:
        own |= rules.installed()
    if not own:
        raise UserError("no rules to test", "name a folder, or set rules = [...] in [tool.syncscope.lint]")
    bad = 0

    def hold(number: int) -> str:
        return f"{number} example holds" if number == 1 else f"{number} examples hold"

    for name, rule in sorted(own.items()):
        found = list(failures(name, rule, settings))
        bad += bool(found)
        echo(f"{name}: {'FAILED' if found else hold(len(rules.examples(name, rule)))}")
        for why in found:
            echo("  " + why.replace("\n", "\n  "))
    return int(bad > 0)


def list_ops() -> int:
    """Say what there is to claim, family by family."""
    from itertools import groupby

    from syncscope.model.ops import Op

    widest = max(map(len, Op))
    for family, each in groupby(Op, key=lambda op: op.family):
        echo(f"{family.value}:")
        for op in each:
            echo(f"  {op:<{widest}}  {op.words}")
    return 0
