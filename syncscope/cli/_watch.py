"""`--watch`: lint again whenever a Python file, a notebook or the configuration changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import click

from syncscope.cli._console import complain, echo
from syncscope.errors import UserError

PAUSE = 0.5  # seconds between two looks


def watch(paths: Sequence[str], lint: Callable[[], int]) -> int:
    """Run until Ctrl-C; the exit code of the last run."""
    code, before = 0, None
    try:
        while True:
            now = stamps(paths)
            if now != before:
                before = now
                forget()
                click.clear()
                try:
                    code = lint()
                except UserError as error:
                    complain(error)
                    code = 2
                echo("watching; Ctrl-C ends", err=True)
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        echo("", err=True)
    return code


def stamps(paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """When each file was last written, and its size."""
    import os

    from syncscope.linter.config import Config
    from syncscope.linter.files import find

    found = {}
    try:
        files = list(find(paths, lambda _: Config(), lambda _, __: None))
    except UserError:
        return {}
    folders = {os.path.dirname(os.path.abspath(f)) for f in files}
    for path in [*files, *(os.path.join(folder, "pyproject.toml") for folder in folders)]:
        try:
            told = os.stat(path)
        except OSError:
            continue
        found[path] = (told.st_mtime_ns, told.st_size)
    return found


def forget() -> None:
    """What earlier runs remember of files that may have changed."""
    from syncscope.linter import config, engine

    config.read.cache_clear()
    engine.project.cache_clear()
