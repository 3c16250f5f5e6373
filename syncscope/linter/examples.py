"""A rule's examples as tests: exactly the marked lines, the fix as shown, and clean code after it."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from syncscope.linter import own_rules
from syncscope.linter.config import Config
from syncscope.linter.engine import check, project_of
from syncscope.linter.fixing import mend
from syncscope.linter.notebooks import source_of
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.rules import Example, Paged, examples
from syncscope.tensors.interpret import sites

MARK = re.compile(r"[ \t]*(?:#|//) !$", re.MULTILINE)
NAME = "example"


def failures(name: str, rule: Paged, config: Config) -> Iterator[str]:
    """What is wrong with the examples of a rule, in words; nothing where they all hold."""
    only = replace(
        config, select=(name,), ignore=(), all=True, measured=True, min_confidence="low", per_file_ignores=()
    )
    shown = examples(name, rule)
    if not any(marked(example.code) for example in shown):
        yield f"{name}: no example has a line marked with `# !`"
    for number, example in enumerate(shown, 1):
        yield from (f"{name}, example {number}: {why}" for why in failures_of(example, only))


def failures_of(example: Example, config: Config) -> Iterator[str]:
    """What is wrong with one example."""
    code = plain(example.code)
    try:
        if example.suffix == ".py":
            ast.parse(code)
    except SyntaxError as error:
        yield f"line {error.lineno}: {error.msg}"
        return
    checked = check(NAME + example.suffix, code.encode(), config)
    if checked.failed:
        yield from own_rules.told([checked.failed])
        return
    found = list(checked.findings)
    lines, wanted = {f.place.line for f in found}, marked(example.code)
    if missing := sorted(wanted - lines):
        yield f"not flagged, though marked: {rows(code, missing)}"
        yield from waits_on(code, missing, example.suffix)
    if extra := sorted(lines - wanted):
        yield f"flagged, though not marked: {rows(code, extra)}"
    offered = {f.fix.safety.value for f in found if f.fix}
    promised = {example.safety.value} if example.safety else set()
    if offered != promised:
        yield f"offers {', '.join(sorted(offered)) or 'no'} fix, says {', '.join(sorted(promised)) or 'none'}"
    if example.fixed is not None:
        name = NAME + example.suffix
        result = mend(name, code.encode(), lambda source: findings_in(source, config, example.suffix), set(Safety))
        after = result.raw.decode()
        yield from result.refused
        if after != plain(example.fixed):
            told, got = (text.splitlines(keepends=True) for text in (plain(example.fixed), after))
            yield "the fix is not as shown:\n" + "".join(difflib.unified_diff(told, got, "shown", "made"))
        if len(findings(after, config, example.suffix)) >= len(found):
            yield "the fixed code is flagged as before"
    beside = next((f.fix.also for f in found if f.fix and f.fix.also), None)
    if beside is not None and example.instead is not None:
        after = source_of(NAME, code.encode()).edited(beside.edits).decode()
        if after != plain(example.instead):
            yield f"what is offered beside the fix is not as shown:\n{after}"


def waits_on(code: str, lines: Collection[int], suffix: str) -> Iterator[str]:
    """What waits on lines, by the names that OPS takes: a rule that claims none of them is not asked."""
    found = sites(code.encode(), NAME + suffix, project_of(Config())) if suffix == ".py" else ()
    for line in lines:
        if ops := dict.fromkeys(f"`{site.op}`" for site in found if site.place.line == line):
            yield f"line {line} waits by {', '.join(ops)}: is that in OPS?"


def fixes_of(name: str, example: Example) -> list[Fix]:
    """The fixes that a rule that comes with syncscope offers for one of its examples, in order."""
    only = Config(select=(name,), all=True, measured=True, min_confidence="low", backend="ocl")
    return [f.fix for f in findings(plain(example.code), only, example.suffix) if f.fix is not None]


def findings(code: str, config: Config, suffix: str = ".py") -> list[Finding]:
    """What the rule says of a piece of code."""
    return list(check(NAME + suffix, code.encode(), config).findings)


def findings_in(source: SourceFile, config: Config, suffix: str) -> list[Finding]:
    """What the rule says of a source."""
    return findings(source.code.decode(), config, suffix)


def plain(code: str) -> str:
    """An example as a file holds it, without its marks."""
    return MARK.sub("", inspect.cleandoc(code)) + "\n"


def marked(code: str) -> set[int]:
    """The lines that must be flagged."""
    return {n for n, line in enumerate(inspect.cleandoc(code).splitlines(), 1) if line.endswith(("# !", "// !"))}


def rows(code: str, numbers: list[int]) -> str:
    """Lines by number and text."""
    lines = code.splitlines()
    return "; ".join(f"line {n}: {lines[n - 1].strip()}" for n in numbers)
