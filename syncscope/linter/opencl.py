"""What there is to say of OpenCL C, and of the host's side of it, in a file of any kind: findings and comments as of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from syncscope import opencl_c
from syncscope.linter.config import Config
from syncscope.linter.diagnostics import fingerprint, unparsable
from syncscope.linter.source import OPENCL_SUFFIXES, SourceFile
from syncscope.linter.suppressions import Comment
from syncscope.model.finding import Edit, Finding
from syncscope.model.ops import Family
from syncscope.model.source import Place, Span
from syncscope.opencl_c.facts import KernelProgram
from syncscope.opencl_c.rules import builtin
from syncscope.opencl_c.text import Node, Unit, errors, unit

ALLOW = re.compile(rb"(?://|/\*)[ \t]*syncscope:[ \t]*allow(?:[ \t]*\[(?P<rules>[^\]\n]*)\])?(?:(?!\*/)[^\n])*(?:\*/)?")
HIDDEN = re.compile(rb"\b(?:__)?kernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+(\w+)\s*\(")
SIMPLE = {"expression_statement", "declaration", "return_statement", "preproc_def", "preproc_function_def"}
COMPOUND = {
    "if_statement",
    "for_statement",
    "while_statement",
    "do_statement",
    "function_definition",
    "switch_statement",
}


@dataclass(frozen=True)
class Programs:
    """What a file holds: its programs in OpenCL C."""

    units: tuple[Unit, ...]


def programs(source: SourceFile) -> Programs:
    """The programs of a file."""
    if source.path.endswith(OPENCL_SUFFIXES):
        return Programs((unit(source.code),))
    return Programs(())


def findings(source: SourceFile, held: Programs, config: Config) -> Iterator[Finding]:
    """What the rules that are on say of the programs of a file."""
    off = config.ignored_in(source.path)
    on = {name: rule for name, rule in builtin().items() if name not in off}
    missed = [finding for each in held.units for finding in unread(source, each)]
    yield from missed[:1]
    for each in held.units:
        program = KernelProgram(each)
        for name, rule in on.items():
            if rule.FAMILY is Family.KERNEL:
                for sighting in rule.find(program):
                    node = each.root.descendant_for_byte_range(sighting.start, sighting.end)
                    routine = program.routine(node)
                    kernel = f"in the kernel `{routine.name}`" if routine and routine.is_kernel else "in a kernel"
                    yield found(
                        source, name, rule, moved(sighting, each.start, kernel), routine.name if routine else ""
                    )


def moved(sighting: opencl_c.Sighting, start: int, hotness: str) -> opencl_c.Sighting:
    """A sighting in a program as one in the file that holds it."""
    fix = sighting.fix
    if fix is not None:
        edits = (Edit(Span(e.span.start + start, e.span.end + start), e.text) for e in fix.edits)
        fix = replace(fix, edits=tuple(edits))
    return replace(sighting, start=sighting.start + start, end=sighting.end + start, fix=fix, hotness=hotness)


def found(source: SourceFile, name: str, rule: opencl_c.KernelRule, at: opencl_c.Sighting, function: str) -> Finding:
    """A sighting as a finding."""
    (line, column), (end_line, end_column) = source.position(at.start), source.position(at.end)
    return Finding(
        rule=name,
        place=Place(source.path, line),
        column=column,
        end_line=end_line,
        end_column=end_column,
        span=Span(at.start, at.end),
        message=at.message,
        confidence=at.confidence,
        hot=bool(at.hotness),
        hotness=at.hotness,
        fix=at.fix,
        function=function,
        severity=rule.SEVERITY.value if at.hotness else "note",
        fingerprint=fingerprint(name, source, line, end_line),
    )


def unread(source: SourceFile, one: Unit) -> Iterator[Finding]:
    """Each kernel that could not be read, as one finding; the others are linted all the same."""
    if not one.root.has_error:
        return
    routines = {r.name: r for r in KernelProgram(one).routines}
    for head in HIDDEN.finditer(one.original):
        name = head[1].decode()
        routine = routines.get(name)
        bad = next(errors(routine.node), None) if routine is not None and routine.node.has_error else None
        if routine is None or bad is not None:
            line, column = source.position(one.start + (bad.start_byte if bad is not None else head.start()))
            error = SyntaxError(f"the kernel `{name}` cannot be read: a macro that stands where C has none?")
            error.lineno, error.offset = line, column
            yield unparsable(source.path, error, source)


def comments(source: SourceFile, held: Programs) -> list[Comment]:
    """The `// syncscope: allow[...]` of a file's programs."""
    listed = []
    for each in held.units:
        for match in ALLOW.finditer(each.original):
            start = match.start()
            row = each.original.rfind(b"\n", 0, start) + 1
            at = row
            if not each.original[row:start].strip():  # alone: it speaks of the next line that holds code
                behind = re.compile(rb"\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*", re.DOTALL).match(each.original, start)
                at = behind.end() if behind else start
            else:
                at = row + len(each.original[row:start]) - len(each.original[row:start].lstrip())
            first, last = lines(each.root.descendant_for_byte_range(at, at + 1))
            here = source.position(each.start + start)[0]
            shift = source.position(each.start)[0] - 1
            names = frozenset(re.findall(r"[\w-]+", (match["rules"] or b"").decode()))
            span = Span(each.start + start, each.start + start + len(match[0].rstrip()))
            listed.append(Comment(min(first + shift, here), max(last + shift, here), names, span, True))
    return listed


def lines(node: Node) -> tuple[int, int]:
    """The first and last line of the statement at a node: all of a simple one, the head of one that holds others."""
    row = node.start_point[0]
    while node.parent is not None and node.type not in SIMPLE | COMPOUND:
        node = node.parent
    if node.type in COMPOUND:
        body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
        last = body.start_point[0] if body is not None and node.type != "do_statement" else node.start_point[0]
        return (node.start_point[0] + 1, last + 1) if row <= last else (row + 1, row + 1)
    if node.type in SIMPLE:
        return node.start_point[0] + 1, node.end_point[0] + 1
    return row + 1, row + 1


def allowed_at(source: SourceFile, line: int) -> tuple[int, bytes] | None:
    """Where in a line of C an `allow` may be put, and what it looks like there; None where it would end up in a text."""
    start = source.starts[line - 1]
    row = source.code[start:].split(b"\n", 1)[0].rstrip(b"\r")
    if row.endswith(b"\\"):
        return None
    return start + len(row.rstrip()), b"//"
