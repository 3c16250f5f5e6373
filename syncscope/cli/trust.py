"""`syncscope trust`: which folders of rules may run."""

from __future__ import annotations

import click

from syncscope.cli._console import echo
from syncscope.errors import UserError
from syncscope.model.words import visible


@click.command(short_help="Let the rules of a repository run.")
@click.argument("folders", nargs=-1, metavar="[FOLDER...]")
@click.option("--forget", is_flag=True, help="Trust these no more.")
@click.option("--list", "listed", is_flag=True, help="Say which folders are trusted.")
def command(folders: tuple[str, ...], forget: bool, listed: bool) -> int:
    """Let the rules in FOLDER run, as they are now: rules are code. Without FOLDER, those that pyproject.toml names.

    Kept in your own settings, with a hash of the folder's files: when one of them changes, you are asked again. A repository
    cannot trust itself. In CI, name the folder instead: syncscope lint --rules lint_rules

    \b
    syncscope trust lint_rules
    syncscope trust --forget lint_rules
    """
    from syncscope.linter import trust
    from syncscope.linter.config import Configs, shown

    if listed:
        for folder in trust.trusted():
            echo(f"{visible(folder)}{'' if trust.is_trusted(folder) else '  (has changed since)'}")
        return 0
    if not folders:
        config = Configs().of("x.py")
        folders = tuple(map(shown, (*config.rules, *config.refused)))
    if not folders:
        raise UserError("pyproject.toml names no rules", "name the folder: syncscope trust lint_rules")
    for folder in folders:
        if forget:
            echo(f"{visible(folder)} {'is trusted no more' if trust.forget(folder) else 'was not trusted'}")
        else:
            echo(f"trusted {visible(folder)}: {visible(', '.join(trust.trust(folder)) or 'no rules yet')}")
    return 0
