"""What the linter says of the source files of a program that runs, or ran."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscope.model.report import Report
    from syncscope.model.source import Place


CELLS = "cells.ipynb"  # the notebook that they are read as
# all that is known; the rules of OpenCL C speak of no line of a recording
WHOLE = {"all": True, "measured": True, "min_confidence": "low", "baseline": "", "ignore": ("kernel", "host-program")}


def linted(paths: list[str], libraries: Collection[str] = ()) -> Report:
    """What the linter says of the user's own files among these, and of the files of `libraries`; and every hazard it knows."""
    from dataclasses import replace

    from syncscope.linter import rulesets
    from syncscope.linter.gathering import gather
    from syncscope.linter.run import Files
    from syncscope.rules import hazard

    own = [path for path in paths if path in libraries or not is_installed(path)]
    files = Files(own, dict(WHOLE))
    rules = rulesets.ruleset(files.config(".").rules)
    return replace(gather(files).report(), hazards=tuple(hazard(name, rule) for name, rule in rules.items()))


def of_cells(texts: Mapping[int, str]) -> Report:
    """What the linter says of the cells that were run in this process, by their numbers; places are in `cell [12]`."""
    import json
    from dataclasses import replace

    from syncscope.linter.gathering import texts as linted_texts
    from syncscope.linter.run import Files
    from syncscope.model.source import Place

    kinds = (
        {"cell_type": "code", "source": texts[n]} if n in texts else {"cell_type": "raw"}
        for n in range(1, max(texts) + 1)
    )
    raw = json.dumps({"cells": list(kinds)}).encode("utf-8", "replace")
    found = linted_texts([(CELLS, raw)], Files([os.curdir], dict(WHOLE))).report()
    findings = (replace(f, place=Place(f"cell [{f.cell}]", f.place.line), cell=0) for f in found.findings if f.cell)
    sources = {f"cell [{number}]": text.encode("utf-8", "replace") for number, text in texts.items()}
    return replace(found, findings=tuple(findings), sources=sources)


def is_installed(path: str) -> bool:
    """Whether a file belongs to a library and not to the user."""
    from syncscope.model.source import installed

    return installed(path) or path.startswith(os.path.dirname(os.__file__))


def advice(op: str, place: Place) -> str:
    """What the linter has to say of this line, else the summary of the rule that knows the op; "" where none does."""
    if not os.path.isfile(place.path):
        return ""
    said = linted([place.path])
    known = {hazard.name: hazard.seen_as.index(op) for hazard in said.hazards if op in hazard.seen_as}
    here = [f for f in said.findings if f.place.line <= place.line <= f.end_line and (not known or f.rule in known)]
    if here:
        finding = min(here, key=lambda f: (f.fix is None, known.get(f.rule, 0)))
        rewrite = f": {finding.fix.title}" if finding.fix else ""
        return f"{finding.rule}{rewrite}; syncscope explain {finding.rule}"
    return f"{(name := min(known, key=known.__getitem__))}; syncscope explain {name}" if known else ""
