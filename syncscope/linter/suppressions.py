"""`# syncscope: allow[rule] reason` and `# noqa`: findings that somebody looked at and lets stand.

A comment at the end of a line speaks of the statement that the line belongs to; on a line of its own, of the next statement.
`# noqa` silences all rules, `# noqa: item-read` one; both as other linters read them. Unused `allow` comments are reported.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from syncscope.linter.source import Source
from syncscope.model.finding import Edit, Finding, Fix, Safety
from syncscope.model.source import Span

ALLOW = re.compile(r"#\s*syncscope:\s*allow(?:\s*\[(?P<rules>[^\]]*)\])?(?P<reason>[^#]*)")
NOQA = re.compile(r"#\s*noqa(?P<rules>:[ \t]*[\w-]+(?:[ \t,]+[\w-]+)*)?", re.IGNORECASE)
# A `noqa` that may be meant for us: not one that names only codes of others, as `E501, F401`.
MAYBE_OURS = re.compile(
    rb"#\s*noqa(?!:[ \t]*[a-z]+\d+(?:[ \t,]+[a-z]+\d+)*[ \t]*(?:#|\r?$))", re.IGNORECASE | re.MULTILINE
)
UNUSED = "unused-allow"


@dataclass(frozen=True, slots=True)
class Comment:
    """One suppression: the lines of code it speaks of, the rules it names (none: all of them), where it stands."""

    first: int
    last: int
    rules: frozenset[str]
    span: Span
    ours: bool  # an `allow`: we may call it unused

    def covers(self, finding: Finding) -> bool:
        """Whether it silences this finding."""
        return self.first <= finding.place.line <= self.last and (not self.rules or finding.rule in self.rules)


def ours(code: bytes) -> bool:
    """Whether there may be an `allow` in it: a file of suppressions and nothing else is looked at too."""
    return b"syncscope:" in code


def comments(source: Source, tree: ast.Module | None) -> list[Comment]:
    """The suppressions of a file. Tokenises it only where its bytes look as if there were one."""
    code = source.code
    if b"syncscope:" not in code and not MAYBE_OURS.search(code):
        return []
    reach = statements(tree) if tree else []
    found = []
    for token in tokens(code):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        for pattern, ours in ((ALLOW, True), (NOQA, False)):
            if match := pattern.search(token.string):
                row = source.starts[line - 1]
                before = code[row:].split(b"\n", 1)[0].decode()[:column]
                start = row + len((before + token.string[: match.start()]).encode())
                end = start + len(match[0].rstrip().encode())
                named = frozenset(re.findall(r"[\w-]+", match["rules"] or ""))
                first, last = target(reach, line, alone=not before.strip())
                found.append(Comment(first, last, named, Span(start, end), ours))
    return found


def tokens(code: bytes) -> Iterable[tokenize.TokenInfo]:
    """The tokens of a file, as far as it can be read."""
    try:
        yield from tokenize.tokenize(io.BytesIO(code).readline)
    except (tokenize.TokenError, SyntaxError):
        return


@dataclass(frozen=True, slots=True, order=True)
class Reach:
    """The lines of a simple statement, or of the head of a compound one; between `end` and `last` its colon may stand."""

    first: int
    end: int
    last: int


def statements(tree: ast.Module) -> list[Reach]:
    """Where each statement is, in order."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            end = last = node.end_lineno or node.lineno
            body = getattr(node, "body", getattr(node, "cases", None))
            if body:
                inner = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
                last = max(node.lineno, min(last, inner.lineno - 1))
                end = max([node.lineno, *(n for n in head_lines(node) if n <= last)])
            found.append(Reach(node.lineno, end, last))
    return sorted(found)


def head_lines(node: ast.stmt) -> Iterable[int]:
    """The lines on which the expressions in the head of a compound statement end."""
    for name, value in ast.iter_fields(node):
        if name not in ("body", "orelse", "finalbody", "handlers", "cases"):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from (c.end_lineno or 0 for c in ast.walk(part) if isinstance(c, ast.expr))


def target(reach: Sequence[Reach], line: int, alone: bool) -> tuple[int, int]:
    """The lines that a comment on this line speaks of; `alone` if there is nothing else on the line."""
    inside = [r for r in reach if r.first <= line <= (r.end if alone else r.last)]
    if inside:
        nearest = max(inside)
        return nearest.first, nearest.last
    if alone:
        return next(((r.first, r.last) for r in reach if r.first > line), (line, line))
    return line, line


def apply(findings: Iterable[Finding], found: Sequence[Comment]) -> tuple[list[Finding], list[Finding], list[Comment]]:
    """The findings that stand, those that are silenced, and the `allow`s that silence nothing."""
    stand: list[Finding] = []
    silent: list[Finding] = []
    used: set[Comment] = set()
    for finding in findings:
        by = [c for c in found if c.covers(finding)]
        used.update(by)
        (silent if by else stand).append(finding)
    return stand, silent, [c for c in found if c.ours and c not in used]


def removal(code: bytes, comment: Comment) -> Fix:
    """Take an unused comment away, and its line if nothing else stands on it."""
    start, end = comment.span.start, comment.span.end
    line = code.rfind(b"\n", 0, start) + 1
    stop = code.find(b"\n", end)
    stop = len(code) if stop < 0 else stop
    if not code[end:stop].strip():
        start = line + len(code[line:start].rstrip(b" \t"))
        end = stop - code[:stop].endswith(b"\r")
        if start == line or not code[line:start].strip():
            start, end = line, min(stop + 1, len(code))
    return Fix("remove the comment", (Edit(Span(start, end), ""),), Safety.SAFE)


def additions(source: Source, by_line: Mapping[int, Sequence[str]], reason: str) -> list[Edit]:
    """An `allow` for each of these lines' rules: behind the statement's last line, or in the `allow` that is there."""
    reach = statements(ast.parse(source.code))
    wanted: dict[int, set[str]] = {}
    for line, rules in by_line.items():
        ends = [r.end for r in reach if r.first <= line <= r.end]
        wanted.setdefault(ends[-1] if ends else line, set()).update(rules)
    edits = []
    for line, missing in sorted(wanted.items()):
        start = source.starts[line - 1]
        row = source.code[start:].split(b"\n", 1)[0].rstrip(b"\r")
        names = sorted(missing)
        match = ALLOW.search(row.decode())
        if match and match["rules"] is not None:
            at = start + len(row.decode()[: match.end("rules")].encode())
            had = re.findall(r"[\w-]+", match["rules"])
            more = "".join(f", {name}" for name in names if name not in had)
            edits.append(Edit(Span(at, at), more))
        else:
            text = f"  # syncscope: allow[{', '.join(names)}]" + (f" {reason}" if reason else "")
            edits.append(Edit(Span(start + len(row.rstrip()), start + len(row)), text))
    return edits
