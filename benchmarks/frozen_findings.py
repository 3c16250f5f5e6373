"""Whether a change leaves all findings as they were: `python benchmarks/frozen_findings.py save|compare FILE FOLDER...`.

`save` writes a line of JSON for each finding of the folders, cold and unsure ones included: path, span, rule, whether it
is hot, title and safety of its fix, a hash of its edits. `compare` lints them again, prints what is gone and what is new, and
fails where there is any. With `--shuffled` the words of all reasons are exchanged before, and what facts say of where they
were learnt, messages, and what fixes are called and say of what they change are written backwards: nothing may hang on them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from syncscope.linter.config import Config
from syncscope.linter.engine import check_file
from syncscope.linter.pool import frugal
from syncscope.model.fact import Fact
from syncscope.model.finding import Finding, Fix
from syncscope.model.heat import Reason

MARK = "\N{LEFT-TO-RIGHT MARK}"  # of what was written backwards
SHOWN = 20  # lines of each kind that a comparison prints


def rows(folders: list[Path]) -> Iterator[str]:
    """The findings, as they are frozen."""
    for folder in folders:
        config = Config(root=str(folder.resolve()), all=True, min_confidence="low")
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            for found in check_file(str(path), config).findings:
                fix = found.fix
                edits = "" if fix is None else repr([(e.span.start, e.span.end, e.text) for e in fix.edits])
                yield json.dumps(
                    {
                        "path": str(path),
                        "line": found.place.line,
                        "span": [found.span.start, found.span.end],
                        "rule": found.rule,
                        "hot": found.heat.whole,
                        "fix": plain(fix.title) if fix else None,
                        "safety": fix.tier.value if fix else None,
                        "edits": hashlib.blake2b(edits.encode(), digest_size=6).hexdigest(),
                    }
                )


def backwards(words: str) -> str:
    """Words that nobody knows; the same where they are so already. What differed before differs now."""
    return words if not words or words.startswith(MARK) else MARK + words[::-1]


def plain(words: str) -> str:
    """What was written backwards, as it was."""
    return words[1:][::-1] if words.startswith(MARK) else words


def write_backwards() -> None:
    """Let facts, fixes and findings say what they say backwards."""
    learnt, fixed, found = Fact.__init__, Fix.__init__, Finding.__init__

    def fact(self: Fact, *args: Any, **more: Any) -> None:
        learnt(self, *args, **more)
        if isinstance(self.provenance, str):
            self.provenance = backwards(self.provenance)

    def fix(self: Fix, *args: Any, **more: Any) -> None:
        fixed(self, *args, **more)
        object.__setattr__(self, "title", backwards(self.title))
        object.__setattr__(self, "terms", tuple(map(backwards, self.terms)))

    def finding(self: Finding, *args: Any, **more: Any) -> None:
        found(self, *args, **more)
        object.__setattr__(self, "message", backwards(self.message))

    for kind, made in ((Fact, fact), (Fix, fix), (Finding, finding)):
        setattr(kind, "__init__", made)  # noqa: B010  (mypy takes no other for a method)


def exchange_words() -> None:
    """Give each reason the words of another."""
    prose = [reason.prose for reason in Reason]
    random.Random(0).shuffle(prose)
    for reason, words in zip(Reason, prose, strict=True):
        reason.prose = re.sub(r"\{\w+\}", "something", words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("save", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--shuffled", action="store_true", help="exchange and turn round all words")
    said = parser.parse_args()
    if said.shuffled:
        exchange_words()
        write_backwards()
    begin = time.process_time()
    with frugal():
        now = list(rows(said.folders))
    print(f"{len(now)} findings, {time.process_time() - begin:.1f} CPU s", file=sys.stderr)
    if said.what == "save":
        said.file.write_text("".join(f"{row}\n" for row in now))
        return
    folders = tuple(str(folder) for folder in said.folders)
    frozen = [row for row in said.file.read_text().splitlines() if json.loads(row)["path"].startswith(folders)]
    gone, new = set(frozen) - set(now), set(now) - set(frozen)
    for sign, each in (("-", gone), ("+", new)):
        for row in sorted(each)[:SHOWN]:
            print(sign, row)
    print(f"{len(gone)} gone, {len(new)} new")
    sys.exit(bool(gone or new))


if __name__ == "__main__":
    main()
