"""Lints and fixes a piece of code with one rule."""

from __future__ import annotations

import ast

from syncscope import rules
from syncscope.model.finding import Finding
from syncscope.tensors.interpret import sites


def findings(code: str, name: str) -> list[Finding]:
    """What one rule finds, all confidences, hot or cold."""
    rule = rules.builtin()[name]
    data = code.encode()
    tree = ast.parse(data)
    view = rules.View(data, sites(data, "example.py", tree=tree), tree)
    found = []
    for site in view.sites:
        if site.op not in rule.OPS or (said := rule.message(site, view)) is None:
            continue
        fix = rule.rewrite(site, view.function(site)) if hasattr(rule, "rewrite") else None
        found.append(
            Finding(name, site.place, 0, 0, 0, site.span, said, site.sure, site.hot, site.heat, site.fact.why, fix)
        )
    return found


def fixed(code: str, name: str) -> str:
    """The code after all fixes of one rule, the suggested ones too."""
    data = code.encode()
    for _ in range(10):
        taken = []
        for finding in findings(data.decode(), name):
            edits = finding.fix.edits if finding.fix is not None else ()
            if edits and not any(a.span.overlaps(b.span) for a in edits for b in taken):
                taken += edits
        if not taken:
            return data.decode()
        for edit in sorted(taken, key=lambda e: e.span, reverse=True):
            data = data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]
    raise AssertionError("fixes do not come to an end")
