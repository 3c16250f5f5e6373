"""OpenCL C as tree-sitter's grammar of C can read it: what only OpenCL knows is blanked, and no byte moves.

A `Unit` holds two texts of equal length, so that a node's bytes are the file's bytes. Where the tree has errors, plainer texts
are tried: without words in capitals that stand like qualifiers (`LOCAL_PTR float* x`), with statements that a macro is given
as blocks, without all but the first branch of each `#if`, without the line of a macro that stands where C has none. The one
with the fewest errors is taken.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

Node = Any  # tree_sitter.Node

SPACES = {"global", "local", "constant", "private", "generic"}
QUALIFIERS = re.compile(
    rb"""(?P<keep>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//(?:\\\n|[^\n])*|/\*.*?\*/)
    |\b(?:__)?(?:kernel|global|local|constant|private|generic|read_only|write_only|read_write)\b
    |\b(?:uniform|pipe)\b
    |^[ \t]*\#[ \t]*pragma\b(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
ATTRIBUTE = re.compile(rb"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
WRAPPED = re.compile(rb'(?>\s+|//[^\n]*+|/\*.*?\*/)*+(?:R"(?P<mark>\w*)\(|[A-Z_]+\()', re.DOTALL)
# the last may be closed in another file
RAW = re.compile(rb'R"(?P<mark>\w*)\((?P<text>.*?)(?:\)(?P=mark)"|\Z)', re.DOTALL)
BLOCK_HEAD = re.compile(rb"\^\s*(?:\w+\s*)?(?:\([^(){};]*\))?\s*\{")  # a block of OpenCL 2.0, ^(int i) { ... }
BLOCK_NAME = re.compile(rb"\(\s*\^(?=\s*\w+\s*\)\s*\()")  # void (^name)(void)
ONCE = re.compile(
    rb"(\s*do\s*(?:\\\r?\n\s*)?)(\{.*\})(\s*(?:\\\r?\n\s*)?while\s*\(\s*0\s*\)\s*;?\s*(?://[^\n]*|/\*[^*]*\*/)?\s*)",
    re.DOTALL,
)
BRACES = re.compile(rb"[{}]")
HALF = re.compile(rb"(\b\d+\.\d*|\.\d+)[hH]\b")
TRAILING = re.compile(rb"(?<=[\w*])\s+[A-Z_][A-Z0-9_]{3,}(?=\s*\)\s*\{)")  # (ulong total PARAMS) {
SHOUTED = re.compile(rb"\b[A-Z_][A-Z0-9_]+\b(?=\s+(?:const\s+|unsigned\s+)?[A-Za-z_]\w*(?:\s*\*\s*|\s+)[A-Za-z_])")
MACRO_LINE = re.compile(
    rb"^(?:[ \t]*+[A-Z_][A-Za-z0-9_]*+(?:[ \t]*+\((?:[^()\n]|\([^()\n]*\))*\))?+(?=[ \t]|\r?$))++[ \t]*+\r?$",
    re.MULTILINE,
)
# EACH(i, n) {
MACRO_LOOP = re.compile(rb"^[ \t]+[A-Z_][A-Z0-9_]{2,}[ \t]*\((?:[^()\n]|\([^()\n]*\))*\)(?=\s*\{)", re.MULTILINE)
MACRO_CALL = re.compile(rb"\b(\w+[ \t]*\()((?:[^()\n]|\([^()\n]*\))+)\)")
BETWEEN = re.compile(rb"(?<=[\w)\]])[ \t]+[A-Z_]*OP(?:ERATOR|_?[A-Z]*)?[ \t]+(?=[\w(])")  # in.x BINARY_OPERATOR value.x
NUMBERED = re.compile(rb"(?<=[(,])(\s*)\d(\d*_+)(?=\s*[,)])")  # ROUND(0_, 17)
HEAD = re.compile(rb"^([ \t]*)\w*KERNEL\w*[ \t]*\([^()\n]*\)(?=\s+\w+\s*\()", re.MULTILINE)  # KERNEL(256) name(
LONGEST = 4000  # bytes of statements in a macro
GIVEN = re.compile(rb"\b[A-Z_][A-Z0-9_]{2,}\(")
SIGNS = re.compile(rb"[(),;]")
CONDITION = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(?![\w(])[ \t]*((?:\\\n|[^\n])*)", re.MULTILINE)
KERNEL = re.compile(rb"\b(?:__)?kernel\b")
TEMPLATE = re.compile(rb"\btemplate\s*<|\bnamespace\b|\bauto\b|::")  # C++ for OpenCL
BLOCK = re.compile(rb"[^\n]")
DEFINED = re.compile(
    rb"^([ \t]*\#[ \t]*define[ \t]+(?P<name>\w+)(?:\([^()\n]*\))?)(?P<text>(?:\\\r?\n|[^\n])*)", re.MULTILINE
)
# `${TYPE} x` and `%TYPE x`, that a generator puts in
TEMPLATED = re.compile(rb"\$\{[^{}\n]*\}|(?<=[\s(,*])%(?=[A-Za-z_])")


START = attrgetter("start_byte")
OPERATIONS = {"binary_expression", "assignment_expression"}


@dataclass(frozen=True, eq=False)
class Unit:
    """OpenCL C that is compiled as one program. `start` is where its texts begin in the code of the file."""

    original: bytes
    text: bytes
    root: Node
    start: int = 0
    has_holes: bool = False  # parts of it are known only when it runs

    @cached_property
    def nodes(self) -> dict[str, list[Node]]:
        """Every node by its type, in the order of the text."""
        found: dict[str, list[Node]] = {}
        for node in walk(self.root):
            found.setdefault(node.type, []).append(node)
        return found

    def of(self, *types: str, inside: Node = None) -> list[Node]:
        """The nodes of these types, type by type; `inside` of a node: itself and those below it."""
        found = [self.nodes.get(each, []) for each in types]
        if inside is not None:
            first, last = inside.start_byte, inside.end_byte
            found = [each[bisect_left(each, first, key=START) : bisect_left(each, last, key=START)] for each in found]
        return [node for each in found for node in each]

    @cached_property
    def macros(self) -> dict[str, bytes]:
        """What is defined without parameters, and as what."""
        return {m[1].decode(): uncommented(m[2]).strip() for m in DEFINE.finditer(self.original)}

    @cached_property
    def definitions(self) -> dict[str, list[tuple[int, bytes]]]:
        """What is defined without parameters, each time, with the byte at which it is."""
        found: dict[str, list[tuple[int, bytes]]] = {}
        for one in DEFINE.finditer(self.original):
            found.setdefault(one[1].decode(), []).append((one.start(), uncommented(one[2]).strip()))
        return found

    def is_undefined(self, name: str) -> bool:
        """Whether a macro is taken back, and defined anew, as one after another is generated."""
        return re.search(rb"#[ \t]*undef[ \t]+%s\b" % re.escape(name.encode()), self.original) is not None

    def mentions(self, word: bytes) -> bool:
        """Whether the program holds this word, were it in a comment."""
        return word in self.original


def unit(code: bytes, start: int = 0, has_holes: bool = False) -> Unit:
    """The program of this text, which begins at `start` in its file."""
    original = unwrapped(code)
    text = qualified(original)
    root = parse(text)
    errors = count(root)
    tries: tuple[Callable[[bytes], bytes], ...] = (
        lambda t: TEMPLATED.sub(lambda m: b"_" + b"h" * (len(m[0]) - 1) if len(m[0]) > 1 else b" ", t),
        lambda t: TRAILING.sub(blank, SHOUTED.sub(blank, t)),
        statements,
        lambda t: HEAD.sub(lambda m: m[1] + b"void".ljust(len(m[0]) - len(m[1])), t),
        lambda t: BETWEEN.sub(lambda m: b" +".ljust(len(m[0])), NUMBERED.sub(rb"\1_\2", t)),
        lambda t: MACRO_LOOP.sub(blank, t),
        first_branches,
        lambda t: MACRO_LINE.sub(ended, t),
        lambda t: MACRO_LINE.sub(blank, t),
    )
    for simpler in tries if errors else ():
        other = simpler(text)
        if other != text:
            its = parse(other)
            left = count(its)
            if left < errors:
                text, root, errors = other, its, left
    if errors and TEMPLATE.search(text) and count(its := parse(text, cpp=True)) < errors:
        root = its
    return Unit(original, text, root, start, has_holes)


@cache
def parser(cpp: bool = False) -> Any:
    """The parser of C, or of C++; imported where there is something to parse."""
    import tree_sitter

    if cpp:
        from tree_sitter_cpp import language
    else:
        from tree_sitter_c import language
    return tree_sitter.Parser(tree_sitter.Language(language()))


def parse(text: bytes, cpp: bool = False) -> Node:
    """The tree of a text."""
    return parser(cpp).parse(text).root_node


def part(node: Node, name: str) -> Node:
    """What stands at a place of a node that the grammar has a name for; None where nothing does."""
    return node and node.child_by_field_name(name)


def said(node: Node | None) -> str:
    """The text of a node; "" of none."""
    return "" if node is None else node.text.decode("utf-8", "replace")


def sign(node: Node | None) -> str:
    """The operator between two operands; "" of anything else."""
    return said(part(node, "operator")) if node is not None and node.type in OPERATIONS else ""


def walk(node: Node, into: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """A node and all below it, in the order of the text; what `into` refuses is given, but not entered."""
    cursor = node.walk()
    while True:
        yield (one := cursor.node)
        if into(one) and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def errors(root: Node) -> Iterator[Node]:
    """What could not be read, in order."""
    yield from (n for n in walk(root, lambda n: n.has_error and not n.is_error) if n.is_error or n.is_missing)


def count(root: Node) -> int:
    """How many places could not be read."""
    return sum(1 for _ in errors(root)) if root.has_error else 0


def blank(found: re.Match[bytes]) -> bytes:
    """As many spaces; lines stay."""
    return BLOCK.sub(b" ", found[0])


def ended(found: re.Match[bytes]) -> bytes:
    """Macros that stand as statements without a semicolon, `STEP(32) STEP(16)`, as calls that end: an argument makes room."""
    return MACRO_CALL.sub(lambda m: m[1] + b" " * (len(m[2]) - 1) + b");", found[0])


def qualified(code: bytes) -> bytes:
    """The text without what C does not know: address spaces and the like, attributes, pragmas; kernels that a macro is
    defined as stand there as if they were written once."""
    code = DEFINED.sub(undefined, blockless(code))
    code = HALF.sub(rb"\1f", QUALIFIERS.sub(lambda m: m[0] if m["keep"] else blank(m), code))
    macros = list(macros_of(code))
    names = {n for n, value in macros if not value} - {n for n, value in macros if value}  # `#define LOCAL_PTR __local`
    code = ATTRIBUTE.sub(blank, code)
    if names:
        empty = re.compile(
            rb"^[ \t]*#[^\n]*|\b(?:" + "|".join(sorted(map(re.escape, names))).encode() + rb")\b", re.MULTILINE
        )
        code = empty.sub(lambda m: m[0] if m[0].lstrip()[:1] == b"#" else blank(m), code)
    return code


def blockless(code: bytes) -> bytes:
    """The text with 0 for each block: another kernel, whose items nobody knows here."""
    if b"^" not in code:
        return code
    kept, end = bytearray(BLOCK_NAME.sub(lambda m: m[0][:-1] + b"*", code)), 0
    for head in BLOCK_HEAD.finditer(code):
        if head.start() < end:
            continue
        open_ = 1
        for brace in BRACES.finditer(code, head.end()):
            open_ += 1 if brace[0] == b"{" else -1
            if not open_:
                end = brace.end()
                kept[head.start() : end] = b"0" + BLOCK.sub(b" ", code[head.start() + 1 : end])
                break
    return bytes(kept)


def undefined(found: re.Match[bytes]) -> bytes:
    """A macro that stands for a kernel as this kernel, `f##_add` as one name; one that swaps in a loop, as a function."""
    if b"cmpxchg" in found["text"] and (loop := ONCE.fullmatch(found["text"])):
        define, body = found[1].find(b"#"), re.sub(rb"\\(?=\r?\n)", b" ", loop[2])
        head = found[1][:define] + b"void".ljust(found[1].find(found["name"], define) - define)
        return head + found[1][len(head) :] + BLOCK.sub(b" ", loop[1]) + body + BLOCK.sub(b" ", loop[3])
    if not (KERNEL.search(found["text"]) and b"{" in found["text"]):
        return found[0]
    return BLOCK.sub(b" ", found[1]) + re.sub(rb"\\(?=\r?\n)", b" ", found["text"]).replace(b"##", b"__")


def macros_of(code: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and text of what is defined without parameters, but for the guards of headers."""
    yield from ((m[1].decode(), uncommented(m[2]).strip()) for m in DEFINE.finditer(code))


def uncommented(text: bytes) -> bytes:
    """A line of the preprocessor without comments and continuations."""
    return re.sub(rb"/\*.*?\*/|//.*|\\\n", b" ", text, flags=re.DOTALL)


def unwrapped(code: bytes) -> bytes:
    """The text inside of `R"(...)"`, once or several times, or of `STRINGIFY(...)`, around a whole file that C++ includes."""
    found = WRAPPED.match(code)
    if found is None:
        return code
    if found["mark"] is not None:
        kept = bytearray(BLOCK.sub(b" ", code))
        for raw in RAW.finditer(code):
            kept[raw.start("text") : raw.end("text")] = raw["text"]
        return bytes(kept)
    end = code.rfind(b")")
    if end < 0 or code[end + 1 :].strip(b" \t\r\n;"):
        return code
    inside = re.sub(rb"^([ \t]*)\\n", rb"\1  ", code[found.end() : end], flags=re.MULTILINE)  # before a `#`
    return BLOCK.sub(b" ", found[0]) + inside + BLOCK.sub(b" ", code[end:])


def statements(text: bytes) -> bytes:
    """What macros are given as statements, `EACH(i, n, x[i] = 0; y[i] = 1;)`, as blocks: `{ x[i] = 0; y[i] = 1;}`."""
    kept = bytearray(text)
    given = {call.end() - 1: call.start() for call in GIVEN.finditer(text)}
    open_: list[list[int]] = []  # each bracket, and the last comma in it before a semicolon
    semicolon = -1
    for sign in SIGNS.finditer(text):
        at = sign.start()
        if sign[0] == b"(":
            open_.append([at, at])
        elif sign[0] == b";":
            semicolon = at
        elif sign[0] == b"," and open_ and semicolon < open_[-1][0]:
            open_[-1][1] = at
        elif sign[0] == b")" and open_:
            bracket, last = open_.pop()
            start = given.get(bracket, -1)
            if start >= 0 and at - bracket <= LONGEST and text[last + 1 : at].rstrip().endswith((b";", b"}")):
                kept[start : last + 1] = b"{" + BLOCK.sub(b" ", text[start + 1 : last + 1])
                kept[at : at + 1] = b"}"
    return bytes(kept)


def first_branches(text: bytes) -> bytes:
    """Of each `#if` the first branch alone."""
    kept = bytearray(text)
    open_: list[int] = []  # where a branch that is left out begins, or -1
    for line in CONDITION.finditer(text):
        word = line[1]
        start = line.start()
        if word.startswith(b"if"):
            open_.append(-1)
        elif open_ and word != b"endif":
            open_[-1] = start if open_[-1] < 0 else open_[-1]
        elif open_ and (begun := open_.pop()) >= 0:
            start = begun
        kept[start : line.end()] = BLOCK.sub(b" ", text[start : line.end()])
    return bytes(kept)
