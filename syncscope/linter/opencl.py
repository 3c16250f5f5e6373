"""What there is to say of OpenCL C, and of the host's side of it, in a file of any kind: findings and comments as of Python."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from syncscope import opencl_c
from syncscope.codemod.text import Text
from syncscope.linter import suppressions
from syncscope.linter.config import NOT_LINTED, Config, names_one
from syncscope.linter.diagnostics import unparsable
from syncscope.linter.identity import of_lines, of_words, words_around
from syncscope.linter.rulesets import family_slug
from syncscope.linter.source import OPENCL_SUFFIXES, CFile, SourceFile
from syncscope.linter.suppressions import Comment
from syncscope.model.finding import Edit, Finding, Identity
from syncscope.model.heat import Heat, Reason
from syncscope.model.ops import Family
from syncscope.model.source import Place, Span
from syncscope.opencl_c import embedded
from syncscope.opencl_c.facts import KernelProgram, Routine
from syncscope.opencl_c.host import HostProgram
from syncscope.opencl_c.host_cpp import of_cpp
from syncscope.opencl_c.host_python import of_python
from syncscope.opencl_c.rules import builtin
from syncscope.opencl_c.statements import body_words, lines, words
from syncscope.opencl_c.text import Node, Unit, blank, errors, parse, unit
from syncscope.project.folders import located, root_of

ALLOW = re.compile(
    rb"(?://|/\*)[ \t]*syncscope:[ \t]*(?P<word>[A-Za-z][\w-]*)[ \t]*(?:\[(?P<rules>[^\]\n]*)\])?"
    rb"(?P<reason>(?:(?!\*/)[^\n])*)(?:\*/)?"
)
# there, the host waits to compare
TESTS = re.compile(r"(^|/)(\w+_)?(tests?|testing)(_\w+)?/|(^|/)test_[^/]*$|_test\.\w+$")
COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
HIDDEN = re.compile(rb"\b(?:__)?kernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+(\w+)\s*\(")


@dataclass(frozen=True)
class Programs:
    """What a file holds: its programs in OpenCL C, and what it asks of a driver."""

    units: tuple[Unit, ...]
    host: HostProgram | None = None
    around: Unit | Text | None = None  # the C or C++ that holds them, or the Python

    def host_words(self, start: int, end: int) -> bytes | None:
        """What the statement of the host around these bytes says."""
        if isinstance(self.around, Text):
            return words_around(self.around, Span(start, end))
        return None if self.around is None else words(self.around.original, node_at(self.around, start, end))


def node_at(within: Unit, start: int, end: int) -> Node:
    """The smallest node that holds these bytes of a program."""
    return within.root.descendant_for_byte_range(start, end)


def is_of_tests(path: str) -> bool:
    """Whether a file is one of tests, by its name and the folders around it in its project; in none, by the nearest."""
    full = located(path)
    folder = os.path.dirname(full)
    within = os.path.relpath(full, root_of(folder) or os.path.dirname(folder))
    return TESTS.search(within.replace(os.sep, "/")) is not None


def programs(source: SourceFile) -> Programs:
    """The programs of a file."""
    if source.path.endswith(OPENCL_SUFFIXES):
        return Programs((unit(source.code),))
    code = source.code
    if isinstance(source, CFile):
        root = parse(code, cpp=True)
        return Programs(tuple(embedded.in_cpp(code, root)), of_cpp(code, root), Unit(code, code, root))
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # said elsewhere
        return Programs(())
    host = of_python(code, tree) if b"pyopencl" in code else None
    return Programs(tuple(embedded.in_python(code, tree)), host, Text(code, tree))


def findings(source: SourceFile, held: Programs, config: Config) -> Iterator[Finding]:
    """What the rules that are on say of the programs of a file."""
    families, off = partial(family_slug, folders=()), config.ignored_in(source.path)
    on = {name: rule for name, rule in builtin().items() if not names_one(off, name, families)}
    if NOT_LINTED in config.select or any(config.wants(name, families) for name in on):
        yield from islice((finding for each in held.units for finding in unread(source, each)), 1)
    programs = [KernelProgram(each) for each in held.units]
    if held.host is not None:
        held.host.kernels = programs
        for command in held.host.commands:
            for program in programs if command.kernel and not held.host.is_padded(command) else ():
                program.launched.setdefault(command.kernel, []).append(held.host.size(command, 0))
        for name, rule in on.items():
            if rule.FAMILY is Family.HOST_PROGRAM:
                for sighting in rule.find(held.host):
                    heat = Reason.SILENT() if is_of_tests(source.path) else sighting.heat
                    its = held.host_words(sighting.start, sighting.end)
                    yield found(source, name, rule, replace(sighting, heat=heat), its)
    for each, program in zip(held.units, programs, strict=True):
        for name, rule in on.items():
            if rule.FAMILY is Family.KERNEL:
                for sighting in rule.find(program):
                    node = node_at(each, sighting.start, sighting.end)
                    routine = program.routine(node)
                    kernel = Reason.KERNEL(routine.name) if routine and routine.is_kernel else Reason.IN_A_KERNEL()
                    at, its = moved(sighting, each.start, kernel), words(each.original, node)
                    yield in_function(found(source, name, rule, at, its), routine, each.original)


def moved(sighting: opencl_c.Sighting, start: int, heat: Heat) -> opencl_c.Sighting:
    """A sighting in a program as one in the file that holds it."""
    fix = sighting.fix
    if fix is not None:
        edits = (Edit(Span(e.span.start + start, e.span.end + start), e.text) for e in fix.edits)
        fix = replace(fix, edits=tuple(edits))
    return replace(sighting, start=sighting.start + start, end=sighting.end + start, fix=fix, heat=heat)


def found(
    source: SourceFile, name: str, rule: opencl_c.KernelRule, at: opencl_c.Sighting, words: bytes | None
) -> Finding:
    """A sighting as a finding, known by the words of its statement; in none by its lines."""
    (line, column), (end_line, end_column) = source.position(at.start), source.position(at.end)
    its = of_lines(name, source, line, end_line) if words is None else of_words(name, words)
    return Finding(
        rule=name,
        place=Place(source.path, line),
        column=column,
        end_line=end_line,
        end_column=end_column,
        span=Span(at.start, at.end),
        message=at.message,
        confidence=at.confidence,
        heat=at.heat,
        fix=at.fix,
        severity=rule.SEVERITY.value if at.heat.hot else "note",
        fingerprint=its,
        known_by=Identity(its),
    )


def in_function(finding: Finding, routine: Routine | None, text: bytes) -> Finding:
    """A finding with the function of OpenCL C around it, by whose body it is known, too."""
    if routine is None:
        return finding
    body = of_words("", body_words(text, routine.node))
    return replace(finding, function=routine.name, known_by=finding.known_by._replace(body=body))


def unread(source: SourceFile, one: Unit) -> Iterator[Finding]:
    """Each kernel that could not be read, as one finding; the others are linted all the same."""
    if not one.root.has_error:
        return
    program = KernelProgram(one)
    for head in HIDDEN.finditer(COMMENT.sub(blank, one.original)):
        name = head[1].decode()
        routine = program.routine_at(head.start(1))
        bad = next(errors(routine.node), None) if routine is not None and routine.node.has_error else None
        if routine is None or bad is not None:
            line, column = source.position(one.start + (bad.start_byte if bad is not None else head.start()))
            error = SyntaxError(f"the kernel `{name}` cannot be read: a macro that stands where C has none?")
            error.lineno, error.offset = line, column
            unreadable = unparsable(source.path, error, source)
            yield replace(unreadable, confidence=1, severity="note") if one.has_holes else unreadable


def comments(source: SourceFile, held: Programs, known: Collection[str]) -> list[Comment]:
    """The `// syncscope: allow[...]` of a file's programs, and of the C or C++ around them. `known` are the names that want
    brackets."""
    listed = []
    around = [held.around] if isinstance(held.around, Unit) else []
    for each in (*held.units, *around):
        for match in ALLOW.finditer(each.original):
            start, word = match.start(), match["word"].decode()
            if word != "allow" and match["rules"] is None and match["reason"].strip():
                continue  # prose
            if each is held.around and node_at(each, start, start + 1).type != "comment":
                continue  # in a string, which may be a program
            row = each.original.rfind(b"\n", 0, start) + 1
            at = row
            if not each.original[row:start].strip():  # alone: it speaks of the next line that holds code
                behind = re.compile(rb"\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*", re.DOTALL).match(each.original, start)
                at = behind.end() if behind and behind.end() < len(each.original) else start
            else:
                at = row + len(each.original[row:start]) - len(each.original[row:start].lstrip())
            first, last = lines(node_at(each, at, at + 1))
            here = source.position(each.start + start)[0]
            shift = source.position(each.start)[0] - 1
            names = suppressions.named(None if match["rules"] is None else match["rules"].decode())
            said = ("" if word == "allow" else word, "allow")
            if word == "allow" and match["rules"] is None:
                said = suppressions.unbracketed(each.original[match.end("word") : match.end("reason")].decode(), known)
            span = Span(each.start + start, each.start + start + len(match[0].rstrip()))
            listed.append(Comment(min(first + shift, here), max(last + shift, here), names, span, True, *said))
    return listed


def additions(source: SourceFile, by_line: Mapping[int, Sequence[str]], reason: str) -> list[Edit]:
    """An `allow` for each of these lines' rules: behind `//` in the text of a kernel, behind `#` in Python. A line that ends
    with a quote or a backslash gets none: it would not be a comment there."""
    texts = [(source.position(u.start)[0], source.position(u.start + len(u.text))[0]) for u in programs(source).units]
    in_c = {n for n in by_line if isinstance(source, CFile) or any(first <= n <= last for first, last in texts)}
    edits = suppressions.additions(source, {n: rules for n, rules in by_line.items() if n not in in_c}, reason)
    for line in sorted(in_c):
        start = source.starts[line - 1]
        row = source.code[start:].split(b"\n", 1)[0].rstrip()
        if not row.endswith((b"\\", b'"', b"'", b'";', b'"\\')):
            text = f"  // syncscope: allow[{', '.join(sorted(set(by_line[line])))}]" + (f" {reason}" if reason else "")
            edits.append(Edit(Span(start + len(row), start + len(row)), text))
    return edits
