"""A line that is too long over several lines, as formatters lay it out."""

from __future__ import annotations

import io
import itertools
import tokenize
from collections.abc import Iterable
from typing import NamedTuple

STEP = "    "
OPEN, CLOSE = "([{", ")]}"
OPERATORS = frozenset("& | ^ + - * / // % @ and or < > <= >= == != if else".split())
GIVES = {"=", "+=", "-=", "*=", "/=", "&=", "|=", "return"}
HEADS = {"if", "elif", "while"}
BINDING = {  # how strongly operators hold together what stands beside them
    word: strength
    for strength, words in enumerate(("or", "and", "| ", "^", "&", "+ -", "* / // % @"))
    for word in words.split()
}


def tokens_of(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of a piece of a file, as far as they can be told: it may end in the middle of a block."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            found.append(token)  # noqa: PERF402  (what was found before an error counts)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


def folded(line: str, width: int, inside: bool = False, beside: int = 0) -> str:
    """A line over several lines, if it is longer than it may be and its brackets are its own: as formatters lay it out.

    `inside`: it stands in brackets that are open before it. `beside`: so much more stands on the line.
    """
    if len(line) + beside <= width or "\n" in line:
        return line
    indent, code = line[: len(line) - len(line.lstrip())], line.strip()
    tokens = [t for t in tokens_of(code) if t.string.strip()]
    if any(t.type == tokenize.COMMENT for t in tokens):
        return line
    header = code.endswith(":") and not inside
    seen = _outside(tokens, header, inside)
    if seen is None:
        return line
    room = width - len(indent)
    if not inside and (targets := _targets_alone(code, seen, room)):
        names = "\n".join(f"{indent}{STEP}{part}," for part in targets)
        rest = folded(f"{indent}_ = {code[seen.value :].strip()}", width, beside=beside)
        return f"{indent}(\n{names}\n{rest.replace('_', ')', 1)}"
    if rows := _rows(code, seen.listed, inside):
        return "\n".join(folded(f"{indent}{part}", width, inside) for part in rows)
    opened = _opened(code, seen, header, room)
    if opened is None:
        return line
    head, body, tail = opened
    inner, parts = indent + STEP, parts_of(body)
    if len(inner + body) <= width:
        one = body if len(parts) == 1 else body.removesuffix(",")  # a tuple of one has a comma
        return f"{indent}{head}\n{inner}{one}\n{indent}{tail}"
    each = [f"{part}," for part in parts] if len(parts) > 1 else _operands(body)
    laid_out = "\n".join(folded(f"{inner}{part}", width, inside=True) for part in each)
    return f"{indent}{head}\n{laid_out}\n{indent}{tail}"


def _targets_alone(code: str, seen: _Outside, room: int) -> list[str]:
    """The names that a line binds, where they leave no room for what it gives them; none where they do."""
    if not code[: seen.value].endswith(" ="):
        return []
    targets = parts_of(code[: seen.value - 2])
    first = next((start for start, _ in seen.outer if start >= seen.value), len(code))
    return targets if len(targets) > 1 and first >= room else []


def _rows(code: str, listed: bool, inside: bool) -> list[str]:
    """Arguments, or operands, that each get a line of their own; none where it has not several of them."""
    slices = code.endswith(", :")  # the last part of an index, not the head of a block
    arguments = parts_of(code.removesuffix(",")) if listed and (slices or not code.endswith((*OPEN, ":"))) else []
    if len(arguments) > 1:
        return [f"{part}," for part in arguments]
    operands = _operands(code.removesuffix(",")) if inside else []
    if len(operands) > 1:
        operands[-1] += "," * code.endswith(",")
        return operands
    return []


def _opened(code: str, seen: _Outside, header: bool, room: int) -> tuple[str, str, str] | None:
    """What stays on the first line, what gets lines of its own and what comes after, where brackets are opened or put round."""
    outer, value, loose, _ = seen
    if loose and not header and len(code[:value]) + len(" (") > room:  # what it is given to is too long itself
        outer = [(a, b) for a, b in outer if b < value and len(code[b:]) <= room] or outer
        loose = not outer or outer[-1][1] > value
    last = _trailing(code, value, room) if loose and not header else None
    if last is not None:  # one operator, and a call at the end: its brackets are opened, as formatters do
        return code[: last[0] + 1], code[last[0] + 1 : last[1]].strip(), code[last[1] :]
    if loose:  # an operation, or several values: all of it in brackets
        end = len(code) - header
        return f"{code[:value]} (", code[value:end].strip(), f"){code[end:]}"
    if not outer:
        return None
    fitting = [p for p in outer if max(len(code[: p[0] + 1]), len(code[p[1] :])) <= room]
    start, end = fitting[-1] if fitting else outer[-1]
    return code[: start + 1], code[start + 1 : end].strip(), code[end:]


class _Outside(NamedTuple):
    """What of a line stands outside of all its brackets, by the place in it."""

    outer: list[tuple[int, int]]  # where brackets open and close that hold something and stand in no others
    value: int  # where a value begins that is given or asked for; 0 where none is
    loose: bool  # whether that has an operator or a comma
    listed: bool  # whether what stands in brackets that are open before it has a comma


def _outside(tokens: Iterable[tokenize.TokenInfo], header: bool, inside: bool) -> _Outside | None:
    """None where the line opens brackets that it does not close, or closes some of others."""
    depth, outer = 0, list[tuple[int, int]]()
    opened, loose, listed, value = 0, False, False, 0
    for token in tokens:
        at = token.start[1]
        if token.string in OPEN:
            opened, depth = (at if depth == 0 else opened), depth + 1
        elif token.string in CLOSE:
            depth -= 1
            if depth == 0 and at > opened + 1:
                outer.append((opened, at))
        elif depth == 0 and not (inside or value) and token.string in (HEADS if header else GIVES):
            value = token.end[1]
        elif depth == 0 and at >= value > 0 and (token.string in OPERATORS or token.string == ","):
            loose = True
        elif depth == 0 and token.string == "," and inside:
            listed = True
        if depth < 0:
            return None
    return None if depth else _Outside(outer, value, loose, listed)


def _trailing(code: str, value: int, room: int) -> tuple[int, int] | None:
    """The last brackets of a value `a - f(x).to(y)` of one operator, that open on a line with room for what is before them."""
    body = code[value:]
    if len(parts_of(body)) > 1 or len(operands := _operands(body.strip())) != 2:
        return None
    begins, pairs, opened = len(code) - len(operands[1]), list[tuple[int, int]](), list[int]()
    for token in tokens_of(code):
        if token.string in OPEN and token.type == tokenize.OP:
            opened.append(token.start[1])
        elif token.string in CLOSE and token.type == tokenize.OP and opened:
            pairs.append((opened.pop(), token.start[1]))
    outer = [(a, b) for a, b in pairs if a > begins and not any(c < a and b < d for c, d in pairs if c > begins)]
    if outer and outer[-1][1] == outer[-1][0] + 1:
        return None  # nothing is in the last ones, `x.f(y).sum()`: what would be torn apart is in the middle
    fitting = [(a, b) for a, b in outer if max(a + 1, len(code) - b) <= room and b > a + 1]
    return fitting[-1] if fitting and code.endswith(tuple(CLOSE)) else None


def _operands(body: str) -> list[str]:
    """What stands between the operators that bind least, each with the one before it, or clauses."""
    depth, before = 0, ""
    cuts: dict[int, list[int]] = {}
    for token in tokens_of(f"({body})"):
        word, at = token.string, token.start[1] - 1
        if depth == 1 and at and word in ("for", "async", "if", "else"):  # not the one that it begins with
            cuts.setdefault(-1, []).extend([at] if before != "async" else [])
        elif depth == 1 and word in ("lambda", ":="):
            return [body]
        elif depth == 1 and before not in BINDING and before not in OPEN and word in BINDING:
            cuts.setdefault(BINDING[word], []).append(at)
        depth += (word in OPEN) - (word in CLOSE) if word else 0
        before = word or before
    places = [0, *cuts[min(cuts)], len(body)] if cuts else [0, len(body)]
    return [body[a:b].strip() for a, b in itertools.pairwise(places)]


def parts_of(body: str) -> list[str]:
    """What stands between commas; one part where there are none, or a generator would not bear one after it."""
    depth, cuts = 0, [-1]
    for token in tokens_of(f"({body})"):
        if depth == 1 and token.string == "for":
            return [body]
        if token.string and token.string in OPEN:
            depth += 1
        elif token.string and token.string in CLOSE:
            depth -= 1
        elif token.string == "," and depth == 1:
            cuts.append(token.start[1] - 1)
    cuts.append(len(body))
    return [part for a, b in itertools.pairwise(cuts) if (part := body[a + 1 : b].strip())]
