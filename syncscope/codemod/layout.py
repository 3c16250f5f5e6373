"""What a maintainer sees of a fix: comments that stay, and lines no longer than the file's own."""

from __future__ import annotations

import ast
import itertools
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

from syncscope.codemod.caught import swallows
from syncscope.codemod.folding import CLOSE, OPEN, STEP, folded, parts_of, tokens_of
from syncscope.codemod.function import Function
from syncscope.codemod.text import FOR_TOOLS, CannotRewrite, Text, line_end
from syncscope.model.finding import Edit
from syncscope.model.source import Span

ABREAST = re.compile(r"\s*[)\]}]+, [(\[{]+")  # of two parts of many lines, the end of one and the beginning of the next


def comments(code: bytes) -> list[str]:
    """The comments in a piece of a file."""
    if b"#" not in code:  # most have none
        return []
    return [token.string for token in tokens_of(code.decode()) if token.type == tokenize.COMMENT]


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
        indent = function.indent(statement)
        if indent.strip():
            continue
        span = file.span(statement)
        if body := getattr(statement, "body", None):
            result = [_in_its_place(e, indent, file.width) if e.span == span else e for e in result]
            span = _header(file, span, file.span(body[0]))
        own = [e for e in result if span.start <= e.span.start and e.span.end <= span.end and e.span.start < span.end]
        reaching = any(e.span.end > span.end for e in result if span.start <= e.span.start < span.end)
        if own and not reaching and (whole := _folded_whole(function, statement, span, own)) is not None:
            result = [e for e in result if e not in own] + [whole]
    return result


def _folded_whole(function: Function, statement: ast.stmt, span: Span, own: list[Edit]) -> Edit | None:
    """One edit in place of a statement's `own`, or of its head's, folded; None where they stay as they are."""
    file, indent, is_head = function.file, function.indent(statement), bool(getattr(statement, "body", None))
    new = plain = _made(file.code, span, own)
    before = set(file.code[file.starts[statement.lineno - 1] : span.end].decode().splitlines())
    if not is_head and "\n" not in new and len(before) == 1 and len(indent + new) <= max(map(len, before)):
        return None  # it was as long before, and its line is the maintainer's
    tail = file.code[span.end : line_end(file, statement)].decode().rstrip() if not is_head else ""
    if FOR_TOOLS.search(tail) and new.rpartition("\n")[2].strip(" )]}"):  # for this line, which it allows to be long
        return None
    beside = len(tail) if "#" in tail and "\n" not in new else 0
    if any(len(line) + beside > file.width for line in before):  # as it was
        beside = 0
    kept = _made(file.code, span, [_broken_as_before(file.code, e) for e in own])
    if _too_long(indent + new, file.width, before) and not _too_long(indent + kept, file.width, before):
        new = kept
    text = _laid_out(indent, new, before, file.width, beside).removeprefix(indent)
    rest = f"\n{indent}{STEP}pass" if is_head else ""
    return Edit(span, text) if text != plain and _same_tree(indent, plain + rest, text + rest) else None


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
    lines = edit.text.splitlines()
    if len(lines) > 1 and _same_tree(indent, edit.text, " ".join(line.strip() for line in lines)):  # one statement
        text = _laid_out(indent, edit.text, set(), width, 0).removeprefix(indent)
    else:
        text = "\n".join(folded(line, width) for line in (indent + edit.text).splitlines()).removeprefix(indent)
    return Edit(edit.span, text) if text != edit.text and _same_tree(indent, edit.text, text) else edit


def _header(file: Text, span: Span, body: Span) -> Span:
    """The bytes of `if a and b:`, without what stands below it."""
    head = file.code[span.start : body.start].decode()
    last = next((t for t in reversed(tokens_of(head)) if t.string == ":" and t.type == tokenize.OP), None)
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
    if not gives or inner == value or _left_open(head) or len(parts_of(inner)) > 1:
        return flat
    depths = itertools.accumulate((t.string in OPEN) - (t.string in CLOSE) for t in tokens_of(inner) if t.string)
    return flat if min(depths, default=0) < 0 else f"{head}= {inner}"


def _left_open(line: str) -> int:
    """How many brackets a line leaves open: of two, what is in the inner one stands at the indentation of the outer one."""
    signs = [(t.string in OPEN) - (t.string in CLOSE) for t in tokens_of(line.strip()) if t.type == tokenize.OP]
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
