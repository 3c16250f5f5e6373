"""Bytes in, findings out: the rules asked about every site that the inference sees in a file.

Nothing that is linted is imported or run. libcst is imported only where a finding that is shown can be rewritten.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from syncscope.codemod.text import OfProject
from syncscope.files import regular
from syncscope.linter import own_rules, suppressions
from syncscope.linter.checked import Checked, Hidden
from syncscope.linter.config import BUILT_IN, LEAST, Config, names_function, names_one
from syncscope.linter.diagnostics import broken_cell, deepest_line, unparsable, unused_allow
from syncscope.linter.formatting import width
from syncscope.linter.notebooks import Notebook, source_of
from syncscope.linter.rulesets import claimants, family_slug, pages, ruleset, selectable
from syncscope.linter.source import (
    C_SUFFIXES,
    OPENCL_SUFFIXES,
    CFile,
    SourceFile,
    any_code,
)
from syncscope.linter.spared import spared
from syncscope.linter.tracked import Tracked
from syncscope.linter.with_fixes import with_fixes
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Finding
from syncscope.model.heat import BY_FILE, BY_FUNCTION, Reason
from syncscope.model.source import Place, Span, speaks_of_torch
from syncscope.project.folders import folder_around, located
from syncscope.project.own_moves import has_own_move
from syncscope.rules import ASKED, Family, View, is_ours
from syncscope.tensors.interpret import facts_of, sites

DEFINITIONS = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
PYTHON_SUFFIXES = (".py", ".pyw", ".pyi", ".ipynb")
_RUN_BY_PYTHON = re.compile(rb"#![^\n]*python")


def project_of(config: Config) -> Tracked:
    """The project of files with this configuration; without a file of its own it is the same wherever somebody stands."""
    hot = (config.hot, config.root) if config.hot else ((), "")
    return project((*config.src, config.root) if config.file else config.src, *hot)


@lru_cache(maxsize=4)
def project(roots: tuple[str, ...], hot: tuple[str, ...] = (), root: str = "") -> Tracked:
    """The project below these roots; one per process, so that what is imported twice is parsed once. `hot` and its `root` are
    the configuration's: what the steps of others call."""
    return Tracked(tuple(map(Path, roots)), partial(names_function, hot, root) if hot else None)


def is_silent(path: str, raw: bytes, config: Config, named: bool = False) -> bool:
    """Whether a file with this content needs no second look: nothing in it speaks of torch or OpenCL, or to us, and none that
    speaks of torch may pass tensors to it. Python that somebody `named` is looked at, for it may be broken."""
    if named and (path == "-" or path.endswith(PYTHON_SUFFIXES) or _RUN_BY_PYTHON.match(raw)):
        return False
    if _mentions(raw) or suppressions.ours(raw) or speaks_of_opencl(path, raw):
        return False
    return not (path.endswith(".py") and project_of(config).importers(located(path)))


def _mentions(raw: bytes) -> bool:
    """Whether a file speaks of torch, also in UTF-16, which Python cannot read, and which is said of it."""
    return speaks_of_torch(raw) or (b"\0" in raw[:4] and speaks_of_torch(raw.replace(b"\0", b"")))


def speaks_of_opencl(path: str, raw: bytes) -> bool:
    """Whether a file with this content may hold OpenCL C, or enqueue some."""
    if path.endswith(C_SUFFIXES):
        return path.endswith(OPENCL_SUFFIXES) or any(
            word in raw for word in (b"clEnqueue", b"cl::", b"__kernel", b"__global")
        )
    return b"pyopencl" in raw or b"__kernel" in raw


def additions(source: SourceFile, by_line: Mapping[int, Sequence[str]], reason: str) -> list[Edit]:
    """An `allow` for each of these lines' rules, as a comment of the language that the line is in."""
    if speaks_of_opencl(source.path, source.code):
        from syncscope.linter import opencl

        return opencl.additions(source, by_line, reason)
    return suppressions.additions(source, by_line, reason)


def check_file(path: str, config: Config, named: bool = False) -> Checked:
    """What there is to say of a file on disk; one that cannot be read is a problem, not an exception."""
    try:
        raw = regular(path)
    except OSError as error:
        return Checked(path, problem=f"{path}: {error.strerror}")
    return check(path, raw, config, named)


def check(path: str, raw: bytes, config: Config, named: bool = False) -> Checked:
    """What there is to say of a file with this content. Of one that was `named`, also whether it is Python at all."""
    if is_silent(path, raw, config, named):
        return Checked(path, unread=True)
    try:
        source = source_of(path, raw)
    except SyntaxError as error:
        found = unparsable(path, error, SourceFile(path, raw, raw))
        return shown(path, [found] if config.wants(found.rule) else [], config)
    return check_source(source, config, named=named)


@any_code()
def check_source(source: SourceFile, config: Config, apart: bool = False, named: bool = False) -> Checked:
    """What there is to say of this text; lines have fixes `apart` for whoever tries each by itself. `named` as in `check`.

    Everything that is hidden is hidden before its reasons are written out and a rewrite is tried: these are what costs.
    """
    ASKED.clear()
    own_rules.FAILED.clear()
    told = Told([], {}) if isinstance(source, CFile) else of_python(source, config, named)
    said, view = told.findings, told.view
    comments: list[suppressions.Comment] = []
    if speaks_of_opencl(source.path, source.code) and not any(f.rule == "syntax-error" for f in said):
        from syncscope.linter import opencl

        try:
            programs = opencl.programs(source)
            said = [*said, *opencl.findings(source, programs, config)]
            comments = opencl.comments(source, programs, selectable(config.rules))
        except RecursionError:
            said = [*said, too_deep(source)]
    families = partial(family_slug, folders=config.rules)
    if not isinstance(source, CFile):
        comments = [*suppressions.comments(source, {f.rule for f in said}, selectable(config.rules)), *comments]
    stand, silent, unused = suppressions.apply(said, comments, families)
    on = [f for f in stand if config.wants(f.rule, families)]
    result = shown(source.path, on, config)
    findings, also = list(result.findings), list[Finding]()
    if view is not None:
        findings = with_fixes(source, findings, said, silent, told.sites, view, config, apart)
        findings = spared(source, findings, comments, (*selectable(config.rules), *BUILT_IN))
        if not config.all:
            also = [replace(f, fix=None) for f in findings if f.short]
            findings = [f for f in findings if not f.short]
        view.release()
    if not any(f.rule == "syntax-error" and f.severity == "error" for f in said) and config.wants("unused-allow"):
        findings += [
            unused_allow(source, comment, selectable(config.rules)) for comment in unused if judged(comment, config)
        ]
    findings.sort(key=lambda f: (f.span.start, f.rule))
    hidden = result.hidden + Hidden(allowed=len(silent))
    return replace(
        result,
        findings=tuple(findings),
        also=tuple(also),
        hidden=hidden,
        silenced=tuple(silent),
        asked=dict(ASKED),
        failed=dict(own_rules.FAILED),
    )


@dataclass(frozen=True)
class Told:
    """What the inference and the rules say of a file of Python; `sites` has the site of a finding by the finding's `id`."""

    findings: list[Finding]
    sites: dict[int, Site]
    view: View | None = None


def of_python(source: SourceFile, config: Config, named: bool = False) -> Told:
    """What the rules say of a file of Python, with what is needed to mend it. `named` as in `check`."""
    path = source.path
    said, here = [], {}
    if isinstance(source, Notebook):
        said += [broken_cell(source, number, error) for number, error in source.broken]
    try:
        tracked = project_of(config)
        tree = tracked.parsed(path, source.code).tree
        found = sites(source.code, path, tracked, tree)
        view = view_of(source, found, tree, tracked) if found else None  # most files hold nothing that waits
        for site, finding in asked(source, found, view, config) if view is not None else ():
            said.append(finding)
            here[id(finding)] = site
        if not isinstance(source, Notebook) and (named or shown(path, said, config).findings):
            # Of what can be parsed some is no Python yet. To know costs half as much as parsing, and most files show nothing.
            compile(tree, path, "exec", dont_inherit=True)
        return Told(said, here, view)
    except SyntaxError as error:
        return Told([unparsable(path, error, source)], {})
    except (RecursionError, MemoryError):
        return Told([too_deep(source)], {})
    except ValueError as error:  # a null byte, before Python 3.12
        return Told([unparsable(path, SyntaxError(str(error), (path, 1, 1, "")), source)], {})


def view_of(source: SourceFile, found: Sequence[Site], tree: ast.Module, tracked: Tracked) -> View:
    """The file as rules see it that was linted last, and what they may ask of its project, each asked once."""
    path = source.path
    project = OfProject(
        own_moves=cache(lambda: has_own_move(tree) or tracked.of_project("<moves>", path)),
        pins=cache(lambda: tracked.of_project("<pins>", path)),
        sends=cache(lambda: tracked.of_project("<sends>", path)),
        own_graphs=cache(lambda: tracked.of_project("<graphs>", path)),
        needs=cache(lambda: tracked.of_project("<needs>", path)),
        on_host=cache(lambda: tracked.of_project("<host>", path)),
        switches_default=cache(lambda: tracked.of_project("<default>", path)),
        has_others=cache(lambda: tracked.of_project("<others>", path)),
        gives=lambda parameter: tracked.gives(path, parameter),
        speaks_of=lambda name: tracked.speaks_of(path, name),
    )
    return View(source.code, found, tree, width(folder_around(path)), project, facts_of(tracked))


def too_deep(source: SourceFile) -> Finding:
    """What is said of a file whose expressions take more frames than there are."""
    error = SyntaxError("nested too deeply to be analysed", (source.path, deepest_line(source), 1, ""))
    return unparsable(source.path, error, source)


def asked(source: SourceFile, found: Sequence[Site], view: View, config: Config) -> Iterable[tuple[Site, Finding]]:
    """Each site of a rule that is on, and what the rule says of it."""
    rules, claimed = ruleset(config.rules), claimants(config.rules)
    off = config.ignored_in(source.path)
    seen: set[tuple[str, Span]] = set()
    names = dotted(view.statements)
    for site, name in ((s, each) for s in found for each in claimed.get(s.op, ())):
        if (name, site.span) in seen or names_one(off, name, lambda each: family_slug(each, config.rules)):
            continue
        rule = rules[name]
        if site.op.family is Family.FALLBACK and config.backend != "ocl":
            continue
        try:
            message = own_rules.of_kind(rule.message(site, view), str, "message")
        except Exception as error:
            own_rules.failed(name, rule, error, site, source.path)
            continue
        if message is None:
            continue
        seen.add((name, site.span))
        function = names.get(site.function, "") if site.function else ""
        heat = site.heat
        if heat.reason in BY_FUNCTION and function and names_function(config.hot, config.root, source.path, function):
            heat = Reason.CONFIGURED(function)
        if heat.hot and function and names_function(config.cold, config.root, source.path, function):
            heat = Reason.CONFIGURED_COLD(function)
        heat = heat if is_ours(rule) or not heat.hot else Reason.OWN(of=heat)
        (line, column), (end_line, end_column) = source.position(site.span.start), source.position(site.span.end)
        yield (
            site,
            Finding(
                rule=name,
                place=Place(source.path, line),
                column=column,
                end_line=end_line,
                end_column=end_column,
                span=site.span,
                message=message,
                confidence=site.confidence,
                heat=heat,
                function=function,
                severity=rule.SEVERITY.value if heat.whole and site.confidence >= LEAST["medium"] else "note",
            ),
        )


def dotted(every: Iterable[ast.AST]) -> dict[ast.AST, str]:
    """The dotted name of every function among the statements of a file, as `__qualname__` has it but for `<locals>`."""
    names: dict[ast.AST, str] = {}
    around: list[Any] = []
    defined: list[Any] = [each for each in every if each.__class__ in DEFINITIONS]
    for each in sorted(defined, key=lambda node: node.lineno):
        while around and around[-1].end_lineno < each.lineno:
            around.pop()
        names[each] = f"{names[around[-1]]}.{each.name}" if around else each.name
        around.append(each)
    return names


def shown(path: str, found: Iterable[Finding], config: Config) -> Checked:
    """The findings sure and hot enough to be shown, and how many are not."""
    keep, cold, by_file, unsure = [], 0, 0, [0] * len(LEAST)
    for finding in found:
        if finding.confidence < LEAST[config.min_confidence]:
            unsure[finding.confidence] += 1
        elif not (finding.hot or config.all):
            cold += 1
            by_file += finding.heat.reason in BY_FILE
        else:
            keep.append(finding)
    less = sum(unsure[: LEAST["medium"]])
    return Checked(path, tuple(keep), hidden=Hidden(cold, less, medium=unsure[LEAST["medium"]], by_file=by_file))


def judged(comment: suppressions.Comment, config: Config) -> bool:
    """Whether every rule that the comment names was asked, so that it can be called unused."""
    if comment.strange:
        return True
    if (config.select or config.ignore) and comment.rules & {*selectable(config.rules)} - pages(config.rules).keys():
        return False  # of a family some are off
    return all(config.wants(rule, partial(family_slug, folders=config.rules)) for rule in comment.rules)
