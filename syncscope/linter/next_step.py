"""What to do after a command of `lint`: one command more, for the same files and the same findings."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from syncscope.linter.run import Files
from syncscope.model.finding import Finding, Safety

FEW, MANY = 3, 10  # files that are named one by one: of findings, and as they were on the command line


def next_step(
    files: Files,
    findings: Sequence[Finding],
    offered: Counter[Safety],
    *,
    dry: bool,
    since: str,
    more: bool,
) -> str:
    """What to do now, in one command for what was linted, and as it was; `dry`: each fix was just shown, `more`: none was, and
    `--all` shows some."""
    compared = [f"--since {shlex.quote(since)}"] if since else []
    again = " ".join([*compared, *_said(files), *map(shlex.quote, _where(files, findings))])
    if offered[Safety.SAFE]:
        return f"`syncscope lint --fix {again}` makes the fixes that change nothing else"
    if offered[Safety.UNSAFE] and dry:
        makes = f"`syncscope lint --fix --unsafe-fixes {again}` makes them"
        others = "" if files.said.get("all") else ", and those of `--all` whose lines wait in its steps"
        return f"{makes}, `syncscope verify` tries them on a program{others}"
    if offered[Safety.SUGGEST] and dry:
        return f"`syncscope lint -i {again}` asks about each of them, and makes those you choose"
    if (offered[Safety.UNSAFE] or offered[Safety.SUGGEST]) and not dry:
        return f"`syncscope lint --diff {again}` shows each fix and what it changes"
    if more:
        return f"`syncscope lint --diff --all {again}` shows each of them and what it changes"
    rule = Counter(f.rule for f in findings).most_common(1)[0][0]
    return f"`syncscope explain {rule}` says what to do about what is most frequent here"


def _where(files: Files, findings: Sequence[Finding]) -> list[str]:
    """The one file or folder that holds all findings, and nothing that was not linted; else the files, else what was named, of
    which a shell's pattern may have made thousands."""
    paths = sorted({f.place.path for f in findings})
    if len(paths) == 1:
        return paths
    if len(set(map(os.path.isabs, paths))) == 1:
        common = os.path.commonpath(paths) or os.curdir
        holds_all = all(_is_below(path, common) for path in paths)  # not so of `a.py` and `../b.py`
        if holds_all and any(_is_below(common, named) for named in files.paths):
            return [common]
    if len(paths) <= FEW:
        return paths
    return list(files.paths) if len(files.paths) <= MANY else [*files.paths[:FEW], "..."]


def _is_below(path: str, named: str) -> bool:
    return Path(os.path.abspath(path)).is_relative_to(os.path.abspath(named))


def _said(files: Files) -> list[str]:
    """The options by which files and findings were chosen."""
    said: Mapping[str, Any] = files.said
    options = [f"--config {shlex.quote(files.configs.named)}"] if files.configs.named else []
    options += ["--isolated"] if files.configs.isolated else []
    options += ["--all"] if said.get("all") else []
    for key in ("min_confidence", "backend", "baseline"):
        if said.get(key):
            options.append(f"--{key.replace('_', '-')} {shlex.quote(str(said[key]))}")
    for key in ("select", "ignore"):
        if said.get(key):
            options.append(f"--{key} {','.join(said[key])}")
    options += [f"--rules {shlex.quote(folder)}" for folder in said.get("rules") or ()]
    return options
