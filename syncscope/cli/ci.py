"""syncscope ci: a job that lints, ready to be committed."""

from __future__ import annotations

from importlib import resources

import click

from syncscope.cli._console import echo


@click.command(short_help="A ready job for GitHub or GitLab.")
@click.argument("host", type=click.Choice(["github", "gitlab"]))
def command(host: str) -> int:
    """Print a job that lints each change, for GitHub or GitLab: its file needs a line that says what pip installs.

    \b
    syncscope ci github > .github/workflows/syncs.yml
    syncscope ci gitlab > .gitlab-ci.yml
    """
    echo((resources.files("syncscope.cli") / "ci_files" / f"{host}.yml").read_text(), nl=False)
    return 0
