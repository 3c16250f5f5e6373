"""By what a finding is known again in another version of its file: hashes that stay when lines move and locals are renamed.

Baselines, `--since`, and the fingerprints of SARIF, GitLab and JSON all know a finding by them (`linter/known.py` has the
order in which they are asked).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import textwrap
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from syncscope.codemod.function import Function
from syncscope.codemod.text import Text
from syncscope.linter.source import SourceFile
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Fix, Identity, Stays
from syncscope.model.same_code import Names, body_words, imported_parts, own_names, words
from syncscope.model.source import Span
from syncscope.project.syntax import expressions, held, statements, walk
from syncscope.rules import View

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def identified(finding: Finding, site: Site, view: View) -> Finding:
    """The finding with its reasons, and with what it is known by: the expression that waits, what it waits for, and the
    function around it."""
    function, module = view.function(site), view.of(view.tree)
    imported = module.once("the parts imported", view.tree, lambda: imported_parts(view.statements))
    around = view.tree if site.function is None else _outermost(view, site.function)
    names = Names(imported, module.once("its own names", around, lambda: _own(around)))
    wait = _wait(site.node, names)
    text = _hash(words(site.node, Names(names.imported, names.own, held=lambda name: name)))
    followed = Names(names.imported, names.own, held=function.value)
    value = _hash(words(site.operand if site.operand is not None else site.node, followed))
    body = function.once("its body", function.scope, lambda: _body(function, names))
    stays = finding.fix is not None and finding.fix.stays is not Stays.NONE
    leaves = " ".join(_written(finding.fix, function, names)) if finding.fix and stays else ""
    known = Identity(wait, text, value, body, leaves)
    return replace(
        finding, why=site.fact.why, fingerprint=_hash(finding.function.encode(), wait.encode()), known_by=known
    )


def how_often(wait: str, tree: ast.AST, around: ast.AST, parts: Iterable[ast.AST]) -> int:
    """How many of these parts of a file say what a finding with this `wait` waited at. `around` is the outermost function that
    they are in, or else the whole file."""
    names = Names(imported_parts(statements(tree)), _own(around))
    return sum(_wait(each, names) == wait for each in parts)


def _wait(node: ast.AST, names: Names) -> str:
    return _hash(words(node, names))


def _outermost(view: View, function: ast.AST) -> ast.AST:
    """The function that is in no other one, and around this one."""
    line = getattr(function, "lineno", 0)
    return view.outermost[bisect_right(view.outermost, line, key=lambda each: each.lineno) - 1]


def _own(scope: ast.AST) -> frozenset[str]:
    """The names that are bound in a function, or by the module itself."""
    if not isinstance(scope, ast.Module):
        return own_names(walk(scope))
    todo: list[ast.AST] = [scope]
    for each in todo:  # grows while it is gone through
        todo += [inner for inner in held(each) if not isinstance(inner, (*FUNCTIONS, ast.ClassDef))]
    return own_names([node for each in todo for node in expressions(each)])


def _body(function: Function, names: Names) -> str:
    scope = function.scope
    return _hash(body_words(scope, names)) if isinstance(scope, FUNCTIONS) else ""


def _written(fix: Fix, function: Function, names: Names) -> list[str]:
    """Hashes of the calls and selections that a fix writes: one of them waits then. Many findings may have one fix."""
    found: dict[str, None] = {}
    for text in dict.fromkeys(edit.text for edit in fix.edits):
        found |= dict.fromkeys(function.once(f"written {text}", function.scope, functools.partial(_parts, text, names)))
    return list(found)


def _parts(text: str, names: Names) -> list[str]:
    try:
        tree = ast.parse(textwrap.dedent(text.strip("\n")))
    except SyntaxError:  # it is a part of an expression
        return []
    return [_wait(each, names) for each in walk(tree) if isinstance(each, (ast.Call, ast.Subscript))]


def words_around(file: Text, at: Span) -> bytes | None:
    """What the innermost statement of Python says that holds these bytes, or the head of that; None where none does."""
    statement = statement_around(file, at)
    return None if statement is None else words(statement)


def statement_around(file: Text, at: Span) -> ast.stmt | None:
    """The innermost statement of Python that holds these bytes."""
    line = bisect_right(file.starts, at.start)
    near = (s for s in file.statements if isinstance(s, ast.stmt) and s.lineno <= line <= (s.end_lineno or 0))
    spans = {each: file.span(each) for each in near}
    around = [each for each, its in spans.items() if its.start <= at.start and at.end <= its.end]
    return min(around, key=lambda each: spans[each].end - spans[each].start, default=None)


def of_words(rule: str, said: bytes) -> str:
    """A hash of the rule and of what a statement says."""
    return _hash(rule.encode(), said)


@functools.lru_cache(maxsize=64)  # of a line there may be thousands
def of_lines(rule: str, source: SourceFile, line: int, end_line: int) -> str:
    """A hash of the rule and the text of these lines without white space: of what is no statement of Python, and in the first
    forms of baselines of others, too."""
    code = source.code[source.starts[line - 1] : source.starts[end_line] if end_line < len(source.starts) else None]
    return _hash(rule.encode(), *code.split())


def _hash(*said: bytes) -> str:
    return hashlib.blake2b(b"\0".join(said), digest_size=8).hexdigest()
