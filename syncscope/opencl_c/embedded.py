"""OpenCL C in the strings of Python and C++.

No text is put together: the file itself is blanked but for the contents of the strings that make up a program, so that a
byte of the program is the same byte of the file. What is not known until it runs (`{dtype}`, `%(name)s`, `${size}`)
becomes a name of the same length.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from syncscope.model.source import line_starts
from syncscope.opencl_c.text import BLOCK, KERNEL, Node, Unit, part, said, sign, unit

LITERAL = re.compile(
    rb"""(?P<prefix>\b[rRbBuUfF]{1,2}|)(?P<quote>'''|\"\"\"|'|\")(?P<body>(?:\\.|(?!(?P=quote)).)*+)(?P=quote)|\#[^\n]*""",
    re.DOTALL,
)
ESCAPE = re.compile(rb"\\(\r\n|.)", re.DOTALL)
HOLE = re.compile(rb"\{\{|\{(?:[^{}\n]|\{[^{}\n]*\})*\}|\}\}")
LATER = re.compile(
    rb"%\(\w+\)[sdifgxr]|\$\{[^{}\n]*\}|<%(?!\w+ ).*?%>|</?%\w+[^>\n]*>|^[ \t]*(?:%[ \t]|##)[^\n]*",
    re.DOTALL | re.MULTILINE,
)
PERCENT = re.compile(rb"%[sdifgx]")
KEPT = {"n": b" \n", "\\": b" \\", '"': b' "', "'": b" '"}
STRINGIFY = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)\([\w., ]*\)[ \t]*\\?\s*#\s*\w+", re.MULTILINE)
CALLED = rb"^[ \t]*#[ \t]*define(?:\\\r?\n|[^\n])*|\b(?:%s|\w*(?:STRINGIFY|STRINGIZE|TO_STRING|OCL_SOURCE)\w*)\s*\("
BRACKETS = re.compile(rb"""\"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/|[()]""", re.DOTALL)
IS_KERNEL = re.compile(rb"\b(?:__kernel|kernel\s+void|kernel\s+__attribute__)\b")
STRINGS = ("concatenated_string", "string_literal", "raw_string_literal")
END_OF_LINE = {"NL", "EOL", "ENDL", "LF"}  # macros of a string that ends a line
PASSED_ON = {"format", "replace", "substitute", "safe_substitute", "render", "strip", "dedent", "cleandoc", "Template"}


def in_python(code: bytes, tree: ast.Module) -> Iterator[Unit]:
    """The programs in a file of Python: what `Program(context, ...)` is given, and each other string with a kernel in it."""
    values: dict[str, list[ast.expr]] = {}
    strings: list[ast.expr] = []
    alone: set[int] = set()  # what stands as a statement: documentation
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            alone.add(id(node.value))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                values.setdefault(name_of(target), []).append(node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            values.setdefault(name_of(node.target), []).append(node.value)
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            strings.append(node)
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and name_of(n.func) == "Program" and len(n.args) > 1]
    programs = [list(literals(call.args[1], values, set())) for call in calls]
    starts = line_starts(code)
    taken = {id(literal) for program in programs for literal, _ in program}
    inside = {
        id(part) for node in strings if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node
    }
    programs += [
        [(s, False)]
        for s in strings
        if id(s) not in taken | inside | alone and IS_KERNEL.search(segment(code, s, starts))
    ]
    seen: set[tuple[int, ...]] = set()
    for program in programs:
        spans = {(*span(s, starts), formatted) for s, formatted in program}
        pieces = sorted((start, written(code, start, end, formatted)) for start, end, formatted in spans)
        if pieces and tuple(start for start, _ in pieces) not in seen:
            seen.add(tuple(start for start, _ in pieces))
            if any(KERNEL.search(text) or b"get_global_id" in text for _, text in pieces):
                yield laid_out(code, pieces)


def literals(
    node: ast.expr, values: dict[str, list[ast.expr]], seen: set[int], formatted: bool = False
) -> Iterator[tuple[ast.expr, bool]]:
    """The strings that an expression is made of, each with whether its text is a format; what is not known is left out."""
    if id(node) in seen:
        return
    seen.add(id(node))
    below: list[tuple[ast.expr, bool]] = []
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node, formatted
    elif isinstance(node, ast.BinOp):
        below = [(node.left, isinstance(node.op, ast.Mod))]
        below += [(node.right, formatted)] if isinstance(node.op, ast.Add) else []
    elif isinstance(node, (ast.List, ast.Tuple)):
        below = [(element, formatted) for element in node.elts]
    elif isinstance(node, ast.IfExp):
        below = [(node.body, formatted), (node.orelse, formatted)]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        below = [(value, formatted) for value in values.get(name_of(node), ())]
    elif isinstance(node, ast.Call):
        name = name_of(node.func)
        if isinstance(node.func, ast.Attribute) and (name in PASSED_ON or name == "join"):
            below = [(node.func.value, formatted or name == "format")]
        if name in (*PASSED_ON, "join", "str") and node.args:
            below.append((node.args[0], formatted))
    for one, is_format in below:
        yield from literals(one, values, seen, is_format)


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name; "" of what is none."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def span(node: ast.expr | ast.stmt, starts: tuple[int, ...]) -> tuple[int, int]:
    """The bytes of an expression."""
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end


def segment(code: bytes, node: ast.expr, starts: tuple[int, ...]) -> bytes:
    """The text of an expression."""
    start, end = span(node, starts)
    return code[start:end]


def written(code: bytes, start: int, end: int, formatted: bool) -> bytes:
    """The bytes of one or more literals of Python as the program's text: quotes blanked, escapes undone, holes named."""
    text = bytearray(BLOCK.sub(b" ", code[start:end]))
    for found in LITERAL.finditer(code, start, end):
        if found["body"] is None:
            continue
        prefix, body = found["prefix"].lower(), found["body"]
        if b"r" not in prefix:
            body = ESCAPE.sub(unescaped, body)
        if b"f" in prefix or (formatted and b"{{" in body):
            body = HOLE.sub(named, body)
        body = LATER.sub(later, body)
        if formatted:
            body = PERCENT.sub(named, body)
        text[found.start("body") - start : found.end("body") - start] = body
    return bytes(text)


def unescaped(found: re.Match[bytes]) -> bytes:
    """An escape as so many bytes; the end of a line that is joined stays, as lines are counted."""
    if found[1] in (b"\n", b"\r\n"):
        return b" " + found[1]
    return KEPT.get(found[1].decode("latin-1"), b"  ")


def named(found: re.Match[bytes]) -> bytes:
    """A hole as a name; a brace that is doubled as one."""
    if found[0] in (b"{{", b"}}"):
        return b" " + found[0][:1]
    return b"_" + b"h" * (len(found[0]) - 1)


def later(found: re.Match[bytes]) -> bytes:
    """What a template puts in as a name, what it runs as nothing."""
    return named(found) if found[0][:1] in b"%$" and found[0][1:2] in b"({" else BLOCK.sub(b" ", found[0])


def laid_out(code: bytes, pieces: list[tuple[int, bytes]], has_holes: bool = False) -> Unit:
    """The program of these texts, each at its place in the file."""
    first, last = pieces[0][0], max(start + len(text) for start, text in pieces)
    whole = bytearray(BLOCK.sub(b" ", code[first:last]))
    for start, text in pieces:
        whole[start - first : start - first + len(text)] = text
    return unit(bytes(whole), first, has_holes or b"_hh" in whole or b"%" in code[first:last])


def in_cpp(code: bytes, root: Node) -> Iterator[Unit]:
    """The programs in a file of C or C++: strings side by side with a kernel in them, and what is put together of such in a
    function, `text.append("__kernel void "); text += name;`. Of an `if` around such the first branch is taken."""
    joined: dict[tuple[int, str], list[Node]] = {}
    alone: list[Node] = []
    # each with its function, and whether it stands in an `else`
    todo: list[tuple[Node, int, bool]] = [(root, -1, False)]
    while todo:
        node, function, is_other = todo.pop()
        function = node.start_byte if node.type == "function_definition" else function
        name, added = appended(node)
        if name and not is_other:
            joined.setdefault((function, name), []).append(added)
        elif (
            not name
            and node.type not in STRINGS
            and not (sign(node) == "+" and IS_KERNEL.search(node.text))
            and not are_lines(node)
        ):
            below = reversed(node.named_children)
            todo += [(child, function, is_other or child.type == "else_clause") for child in below]
        elif not name and IS_KERNEL.search(node.text):
            alone.append(node)
    if pieces := list(stringified(code)):
        yield laid_out(code, pieces, True)
    for nodes in (*joined.values(), *([node] for node in alone)):
        pieces = [piece for node in nodes for piece in fragments(node)]
        text = b"".join(text for _, text in pieces)
        if IS_KERNEL.search(text):
            yield laid_out(code, pieces, len(nodes) > 1 or text.count(b"{") != text.count(b"}"))


def are_lines(node: Node) -> bool:
    """Whether a list of strings is one program, line by line, and not a program in each."""
    if node.type != "initializer_list" or not IS_KERNEL.search(node.text):
        return False
    texts = [n for n in node.named_children if n.type in STRINGS]
    return len(texts) > 1 and any(n.text.count(b"{") != n.text.count(b"}") or b"{" not in n.text for n in texts)


def stringified(code: bytes) -> Iterator[tuple[int, bytes]]:
    """What macros make strings of, `STRINGIFY(__kernel void f() { ... })`, if a kernel is among it."""
    names = {found[1] for found in STRINGIFY.finditer(code)} | {b"STRINGIFY"}
    calls = re.compile(CALLED % b"|".join(sorted(names)), re.MULTILINE)
    pieces, end = [], 0
    for call in calls.finditer(code):
        if call[0].endswith(b"(") and call.start() >= end and b"#" not in call[0]:
            end = closing(code, call.end())
            pieces.append((call.end(), code[call.end() : end]))
    if any(IS_KERNEL.search(text) for _, text in pieces):
        yield from pieces


def closing(code: bytes, start: int) -> int:
    """The byte of the bracket that closes the one before `start`; `start` itself where none does."""
    open_ = 1
    for found in BRACKETS.finditer(code, start):
        open_ += (found[0] == b"(") - (found[0] == b")")
        if not open_:
            return found.start()
    return start


def appended(node: Node) -> tuple[str, Node]:
    """The name of a text, and what is added to its end here; "" where nothing is."""
    if node.type == "call_expression":
        method, given = part(node, "function"), part(node, "arguments")
        if said(part(method, "field")) == "append" and given.named_child_count == 1:
            return said(part(method, "argument")), given.named_children[0]
    if node.type == "assignment_expression" and sign(node) == "+=" and b'"' in node.text:
        return said(part(node, "left")), part(node, "right")
    if node.type == "binary_expression" and sign(node) == "<<" and b'"' in node.text:
        first = node
        while sign(first) == "<<":
            first = part(first, "left")
        return said(first), node
    return "", None


def fragments(node: Node) -> Iterator[tuple[int, bytes]]:
    """The text of an expression: strings as they are, anything else as a name."""
    if node.type == "string_literal":
        yield node.start_byte + 1, ESCAPE.sub(unescaped, node.text[1:-1])
    elif node.type == "raw_string_content":
        yield node.start_byte, node.text
    elif said(node) in END_OF_LINE:
        return
    elif node.type in (*STRINGS, "parenthesized_expression", "initializer_list") or (
        node.type == "binary_expression" and sign(node) in ("+", "<<")
    ):
        is_first = sign(node) == "<<" and sign(part(node, "left")) != "<<"  # the stream
        for child in node.named_children[is_first:]:
            yield from fragments(child)
    elif node.type != "comment":
        yield node.start_byte, b"_" + b"h" * (node.end_byte - node.start_byte - 1)
