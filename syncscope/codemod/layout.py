"""What a maintainer sees of a fix: comments that stay, and lines no longer than the file's own."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

from syncscope.codemod.caught import swallows
from syncscope.codemod.function import Function
from syncscope.codemod.text import FOR_TOOLS, CannotRewrite, Text, line_end
from syncscope.model.finding import Edit
from syncscope.model.source import Span

STEP = "    "
OPEN, CLOSE = "([{", ")]}"
ABREAST = re.compile(r"\s*[)\]}]+, [(\[{]+")  # of two parts of many lines, the end of one and the beginning of the next
OPERATORS = {
    "&",
    "|",
    "^",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "@",
    "and",
    "or",
    "<",
    ">",
    "<=",
    ">=",
    "==",
    "!=",
    "if",
    "else",
}
GIVES = {"=", "+=", "-=", "*=", "/=", "&=", "|=", "return"}
HEADS = {"if", "elif", "while"}
BINDING = {  # how strongly operators hold together what stands beside them
    word: strength
    for strength, words in enumerate(("or", "and", "| ", "^", "&", "+ -", "* / // % @"))
    for word in words.split()
}


def comments(code: bytes) -> list[str]:
    """The comments in a piece of a file."""
    if b"#" not in code:  # most have none
        return []
    return [token.string for token in _tokens(code.decode()) if token.type == tokenize.COMMENT]


def _tokens(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of a piece of a file, as far as they can be told: it may end in the middle of a block."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            found.append(token)  # noqa: PERF402  (what was found before an error counts)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found


def finished(function: Function, edits: Sequence[Edit]) -> list[Edit]:
    """The edits as they are made: what they leave out of comments stands before the statement, and long lines are folded.

    Raises:
        CannotRewrite: an error that is caught around them would find other statements done.
    """
    _refuse_where_caught(function, edits)
    return _folded(function, [*edits, *_kept_comments(function, edits)])


def statement_at(function: Function, span: Span) -> ast.stmt | None:
    """The innermost statement of a function that holds these bytes."""
    every = function.statements_by_start
    at = bisect_right(every, span.start, key=itemgetter(0)) - 1
    if at < 0:
        return None
    last: ast.stmt = every[at][2]  # that begins before them: it holds them, or one around it does
    for node in (last, *function.around(last)):
        if isinstance(node, ast.stmt) and node is not function.scope and span.end <= function.file.span(node).end:
            return node
    return None


def _refuse_where_caught(function: Function, edits: Sequence[Edit]) -> None:
    """What is read or made earlier or later than it was may raise earlier or later: of one statement, nobody can tell."""
    tries = [t for t in function.every(ast.Try, ast.With, ast.AsyncWith) if swallows(function, t)]
    if not tries or len({id(statement_at(function, e.span)) for e in edits}) < 2:
        return
    for span in (function.file.span(s) for t in tries for s in t.body):
        if any(span.start <= edit.span.start < span.end for edit in edits):
            raise CannotRewrite("an error between its parts is caught here")


def _kept_comments(function: Function, edits: Sequence[Edit]) -> Iterable[Edit]:
    """Comments in what is replaced that the new code has not, on lines of their own before the statement."""
    file = function.file
    written = "\n".join(edit.text for edit in edits)
    for edit in edits:
        old = file.code[edit.span.start : edit.span.end]
        lost = [c for c in comments(old) if c not in written] if b"#" in old else []
        if not lost:
            continue
        statement = statement_at(function, edit.span)
        if statement is None or function.indent(statement).strip():
            raise CannotRewrite("there is no place for a comment")
        if isinstance(statement, ast.If) and function.is_elif(statement):
            raise CannotRewrite("there is no place for a comment before elif")
        start, indent = file.starts[statement.lineno - 1], function.indent(statement)
        if any(other.span.start <= start < other.span.end for other in edits):
            raise CannotRewrite("there is no place for a comment")
        yield Edit(Span(start, start), "".join(f"{indent}{c}\n" for c in lost))


def _folded(function: Function, edits: list[Edit]) -> list[Edit]:
    """The edits, those of a statement whose lines become too long as one of all of it."""
    file, result = function.file, [_folded_lines(e, function.file.width) for e in edits]
    for statement in {id(s): s for e in edits if (s := statement_at(function, e.span)) is not None}.values():
        if function.indent(statement).strip():
            continue
        span, indent = file.span(statement), function.indent(statement)
        if body := getattr(statement, "body", None):
            result = [_in_its_place(e, indent, file.width) if e.span == span else e for e in result]
            span = _header(file, span, file.span(body[0]))
        own = [e for e in result if span.start <= e.span.start and e.span.end <= span.end and e.span.start < span.end]
        if not own or any(e.span.end > span.end for e in result if span.start <= e.span.start < span.end):
            continue
        new = plain = _made(file.code, span, own)
        before = set(file.code[file.starts[statement.lineno - 1] : span.end].decode().splitlines())
        tail = file.code[span.end : line_end(file, statement)].decode().rstrip() if not body else ""
        if FOR_TOOLS.search(tail) and new.rpartition("\n")[2].strip(
            " )]}"
        ):  # for this line, which it allows to be long
            continue
        beside = len(tail) if "#" in tail and "\n" not in new else 0
        if any(len(line) + beside > file.width for line in before):  # as it was
            beside = 0
        kept = _made(file.code, span, [_broken_as_before(file.code, e) for e in own])
        if _too_long(indent + new, file.width, before) and not _too_long(indent + kept, file.width, before):
            new = kept
        text = _laid_out(indent, new, before, file.width, beside).removeprefix(indent)
        rest = f"\n{indent}{STEP}pass" if body else ""
        if text != plain and _same_tree(indent, plain + rest, text + rest):
            result = [e for e in result if e not in own] + [Edit(span, text)]
    return result


def _made(code: bytes, span: Span, edits: Iterable[Edit]) -> str:
    """What stands in a span after these edits."""
    new, at = "", span.start
    for edit in sorted(edits, key=lambda e: e.span):
        new, at = new + code[at : edit.span.start].decode() + edit.text, edit.span.end
    return new + code[at : span.end].decode()


def _broken_as_before(code: bytes, edit: Edit) -> Edit:
    """An edit of one line that ends with a call, its arguments on a line of their own where what it replaces had some so."""
    old, line = code[edit.span.start : edit.span.end], code[: edit.span.start].rpartition(b"\n")[2].decode()
    broken = re.search(rb"\(\r?\n[^\n]*\n[ \t]*\)\Z", old)
    if broken is None or "\n" in edit.text or not edit.text.endswith(")"):
        return edit
    depth, at = 0, len(edit.text)
    while at and (depth or at == len(edit.text)):
        at -= 1
        depth += (edit.text[at] in CLOSE) - (edit.text[at] in OPEN)
    indent = line[: len(line) - len(line.lstrip())]
    inside = edit.text[at + 1 : -1]
    return Edit(edit.span, f"{edit.text[:at]}(\n{indent}{STEP}{inside}\n{indent})") if inside else edit


def _in_its_place(edit: Edit, indent: str, width: int) -> Edit:
    """An edit that takes the place of a statement and all that stands in it, with lines folded that are too long."""
    text = "\n".join(folded(line, width) for line in (indent + edit.text).splitlines()).removeprefix(indent)
    return Edit(edit.span, text) if text != edit.text and _same_tree(indent, edit.text, text) else edit


def _header(file: Text, span: Span, body: Span) -> Span:
    """The bytes of `if a and b:`, without what stands below it."""
    head = file.code[span.start : body.start].decode()
    last = next((t for t in reversed(_tokens(head)) if t.string == ":" and t.type == tokenize.OP), None)
    lines = head.splitlines(keepends=True)
    end = len(("".join(lines[: last.end[0] - 1]) + lines[last.end[0] - 1][: last.end[1]]).encode()) if last else 0
    return Span(span.start, span.start + end)


def _laid_out(indent: str, new: str, before: set[str], width: int, beside: int) -> str:
    """A statement whose new lines are no longer than they may be; where they stay so, one part begins on the line where
    another ends, or a line leaves two brackets open, all of it is laid out anew.

    `beside`: so long is the comment at its end.
    """
    head, *rest = (indent + new).splitlines()
    lines = [head if head in before else folded(head, width, beside=beside)]
    lines += [line if line in before else folded(line, width, inside=True) for line in rest]
    text = "\n".join(lines)
    if not rest or "#" in new:
        return text
    over = _too_long(text, width, before)
    abreast = any(ABREAST.fullmatch(line) for line in lines if line not in before)
    hugged = any(_left_open(line) > 1 for line in lines if line not in before) and not any(
        _left_open(line) > 1 for line in before
    )
    if over or abreast or hugged:
        flat = _without_brackets(re.sub(r" (?=\.)", "", " ".join(line.strip() for line in (head, *rest))))
        anew = folded(indent + re.sub(r",? (?=[)\]}])", "", re.sub(r"(?<=[(\[{]) ", "", flat)), width)
        return anew if _too_long(anew, width, before) < over + abreast + hugged else text
    return text


def _without_brackets(flat: str) -> str:
    """An assignment whose value no longer has a line of its own, without the brackets that held it there."""
    head, gives, value = flat.partition("= ( ")
    inner = value.removesuffix(" )")
    if not gives or inner == value or _left_open(head) or len(_parts(inner)) > 1:
        return flat
    depths = itertools.accumulate((t.string in OPEN) - (t.string in CLOSE) for t in _tokens(inner) if t.string)
    return flat if min(depths, default=0) < 0 else f"{head}= {inner}"


def _left_open(line: str) -> int:
    """How many brackets a line leaves open: of two, what is in the inner one stands at the indentation of the outer one."""
    signs = [(t.string in OPEN) - (t.string in CLOSE) for t in _tokens(line.strip()) if t.type == tokenize.OP]
    return sum(signs)


def _too_long(text: str, width: int, before: set[str]) -> int:
    """By how much the longest of its lines is too long, of those that are new."""
    return max((len(line) - width for line in text.splitlines() if line not in before and len(line) > width), default=0)


def _folded_lines(edit: Edit, width: int) -> Edit:
    """An edit that puts whole lines between others, with those folded that are too long."""
    if edit.span.start != edit.span.end or not edit.text.endswith("\n"):
        return edit
    lines = edit.text.splitlines()
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())] if lines else ""
    if _same_tree(indent, edit.text.removeprefix(indent), " ".join(line.strip() for line in lines)):  # one statement
        text = _laid_out(indent, edit.text.removeprefix(indent), set(), width, 0) + "\n"
    else:
        text = "\n".join(folded(line, width) for line in lines) + "\n"
    same = text != edit.text and _same_tree(indent, edit.text.removeprefix(indent), text.removeprefix(indent))
    return Edit(edit.span, text) if same else edit


def _same_tree(indent: str, old: str, new: str) -> bool:
    head = f"if True:\n{indent}" if indent else ""
    try:
        return ast.dump(ast.parse(head + old)) == ast.dump(ast.parse(head + new))
    except SyntaxError:
        return False


def folded(line: str, width: int, inside: bool = False, beside: int = 0) -> str:
    """A line over several lines, if it is longer than it may be and its brackets are its own: as formatters lay it out.

    `inside`: it stands in brackets that are open before it. `beside`: so much more stands on the line.
    """
    if len(line) + beside <= width or "\n" in line:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    tokens = [t for t in _tokens(line.strip()) if t.string.strip()]
    if any(t.type == tokenize.COMMENT for t in tokens):
        return line
    code, depth, outer = line.strip(), 0, list[tuple[int, int]]()
    opened, loose, listed, value = 0, False, False, 0
    header = code.endswith(":") and not inside
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
            return line
    if depth:
        return line
    targets = _parts(code[: value - 2]) if code[:value].endswith(" =") and not inside else []
    if len(targets) > 1 and len(indent) + next((a for a, _ in outer if a >= value), len(code)) >= width:
        names = "\n".join(f"{indent}{STEP}{part}," for part in targets)
        rest = folded(f"{indent}_ = {code[value:].strip()}", width, beside=beside)
        return f"{indent}(\n{names}\n{rest.replace('_', ')', 1)}"
    slices = code.endswith(", :")  # the last part of an index, not the head of a block
    arguments = _parts(code.removesuffix(",")) if listed and (slices or not code.endswith((*OPEN, ":"))) else []
    if len(arguments) > 1:  # on a line of their own
        return "\n".join(folded(f"{indent}{part},", width, inside) for part in arguments)
    operands = _operands(code.removesuffix(",")) if inside else []
    if len(operands) > 1:  # each on a line of its own
        operands[-1] += "," * code.endswith(",")
        return "\n".join(folded(f"{indent}{part}", width, inside) for part in operands)
    room = width - len(indent)
    if loose and not header and len(code[:value]) + len(" (") > room:  # what it is given to is too long itself
        outer = [(a, b) for a, b in outer if b < value and len(code[b:]) <= room] or outer
        loose = not outer or outer[-1][1] > value
    last = _trailing(code, value, room) if loose and not header else None
    if last is not None:  # one operator, and a call at the end: its brackets are opened, as formatters do
        head, body, tail = code[: last[0] + 1], code[last[0] + 1 : last[1]].strip(), code[last[1] :]
    elif loose:  # an operation, or several values: all of it in brackets
        end = len(code) - header
        head, body, tail = f"{code[:value]} (", code[value:end].strip(), f"){code[end:]}"
    elif outer:
        fitting = [p for p in outer if max(len(code[: p[0] + 1]), len(code[p[1] :])) <= room]
        start, end = fitting[-1] if fitting else outer[-1]
        head, body, tail = code[: start + 1], code[start + 1 : end].strip(), code[end:]
    else:
        return line
    inner = indent + STEP
    parts = _parts(body)
    if len(inner + body) <= width:
        one = body if len(parts) == 1 else body.removesuffix(",")  # a tuple of one has a comma
        return f"{indent}{head}\n{inner}{one}\n{indent}{tail}"
    if len(parts) > 1:
        rows = "\n".join(folded(f"{inner}{part},", width, inside=True) for part in parts)
        return f"{indent}{head}\n{rows}\n{indent}{tail}"
    rows = "\n".join(folded(f"{inner}{part}", width, inside=True) for part in _operands(body))
    return f"{indent}{head}\n{rows}\n{indent}{tail}"


def _trailing(code: str, value: int, room: int) -> tuple[int, int] | None:
    """The last brackets of a value `a - f(x).to(y)` of one operator, that open on a line with room for what is before them."""
    body = code[value:]
    if len(_parts(body)) > 1 or len(operands := _operands(body.strip())) != 2:
        return None
    begins, pairs, opened = len(code) - len(operands[1]), list[tuple[int, int]](), list[int]()
    for token in _tokens(code):
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
    for token in _tokens(f"({body})"):
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


def _parts(body: str) -> list[str]:
    """What stands between commas; one part where there are none, or a generator would not bear one after it."""
    depth, cuts = 0, [-1]
    for token in _tokens(f"({body})"):
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
