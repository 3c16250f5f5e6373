"""Paths as a server wants them: from the root of the repository, wherever in it the command was started."""

from __future__ import annotations

import os

from syncscope.model.source import on_disk

GITHUB, GITLAB = "GITHUB_WORKSPACE", "CI_PROJECT_DIR"
"""What the runner of a server sets to the folder that it has checked out."""


def rooted(path: str, *variables: str) -> str:
    """A path from the folder that one of these environment variables names, where it is below; else as it is."""
    path = on_disk(path)
    full = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for root in (os.path.realpath(os.environ[name]) for name in variables if os.environ.get(name)):
        if full.startswith(os.path.join(root, "")):
            return os.path.relpath(full, root).replace(os.sep, "/")
    return path
