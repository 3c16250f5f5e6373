"""What is known of a program in OpenCL C: its functions, what their names stand for, of which type an expression is.

Unknown is "", and stays silent: a macro of a generator, a type that another file defines.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from syncscope.opencl_c.constants import constant
from syncscope.opencl_c.macros import macros_in
from syncscope.opencl_c.nodes import COMPARISONS, arguments, callee, scope
from syncscope.opencl_c.scalars import BITS, SCALARS, SIZES, TYPE, UNSIGNED, of_literal, wider
from syncscope.opencl_c.text import SPACES, Node, Unit, part, said, sign

BACKSLASH = "\\\n"
LONGEST = 2000  # letters of a macro that is taken for a type or a number
ITEM = re.compile(r"get_(global|local)_(linear_)?id$|get_sub_group_local_id$")
OF_SIZE = re.compile(r"get_(global|local|group|num|enqueued|work)_\w+$")
# What macros of another file say: `LOCAL_VK u32 s[256]`, `KERNEL_FQ`.
SPACE_MACRO = re.compile(r"\b(LOCAL|GLOBAL)(?:_[A-Z]+)?\s+(?:const\s+|volatile\s+)*$")
IS_KERNEL = re.compile(r"\b(?:__)?kernel\b|\b(?:[A-Z0-9]+_)*KERNEL(?:_[A-Z0-9]+)*\b")
WORD = re.compile(r"[A-Za-z_]\w*")
SIZEOF = re.compile(r"\bsizeof\s*\(\s*((?:struct\s+)?\w+)\s*\)")
NAME = re.compile(r"\w+(?:\s*\([\w\s,]*\))?")  # `fill`, and `CAT(fill_, TYPE)`, which a macro pastes
BARRIER = re.compile(
    r"(work_group_)?barrier$|wait_group_events$|async_work_group_\w*copy$|work_group_(all|any|broadcast|reduce|scan)\w*$"
)
SYNC_MACRO = re.compile(r"(?:[A-Z0-9]+_)*(?:BARRIER|SYNC_?THREADS)(?:_[A-Z0-9]+)*$")
HAS_BARRIER = re.compile(rb"\b(?:work_group_)?barrier\s*\(")
ASKS_ITEM = re.compile(rb"\bget_(?:(?:global|local)_(?:linear_)?|sub_group_(?:local_)?)id\s*\(")
RETURNS = re.compile(rb"\breturn\b")
COMPARE_AND_SWAP = re.compile(r"atom(ic)?_(cmpxchg|compare_exchange\w*)$|InterlockedCompareExchange$")
OF_FIRST = frozenset(
    """
    acos acosh asin asinh atan atan2 cbrt ceil clamp copysign cos cosh exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod
    fract hypot ldexp log log2 log10 log1p mad max min mix native_cos native_exp native_log native_rsqrt native_sin native_sqrt
    pow powr rint round rsqrt sign sin sinh sqrt step tan tanh trunc abs rotate
    """.split()
)


@dataclass(frozen=True, slots=True)
class Variable:
    """What a name stands for. `type` is that of an element where it is an array or a pointer, "" where it is not known."""

    name: str
    type: str
    space: str = "private"
    is_pointer: bool = False
    sizes: tuple[Node, ...] = ()  # of an array, outermost first
    node: Node = None
    is_volatile: bool = False
    others: tuple[Variable, ...] = ()  # where several of other types have this name: all of them


@dataclass(frozen=True, eq=False)
class Routine:
    """A function that is defined in the program."""

    name: str
    node: Node
    body: Node
    is_kernel: bool
    returns: str
    parameters: tuple[Variable, ...]
    head: str  # its text up to the body, with its attributes
    variables: dict[str, Variable] = field(default_factory=dict)


class KernelProgram:
    """The functions of a unit, and what can be asked of the expressions in them."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.launched: dict[str, list[str]] = {}  # the global sizes with which a kernel is launched in the same file
        self.macros = macros_in(unit.original)
        self.divergences: dict[Any, Any] = {}  # what `divergence` has found out
        self.open: set[str] = set()  # the macros of which a type is looked for
        self.aliases = {n: text.decode("utf-8", "replace") for n, text in unit.macros.items() if len(text) <= LONGEST}
        for node in unit.of("type_definition"):
            names = [c for c in node.children_by_field_name("declarator") if c.type == "type_identifier"]
            self.aliases |= {said(name): said(part(node, "type")) for name in names}
        bodies = [(said(part(n, "name")), n) for n in unit.of("struct_specifier") if part(n, "body") is not None]
        self.structs = {form: n for name, n in bodies for form in (f"struct {name}", said(n))}
        self.routines = [r for n in unit.of("function_definition") if (r := self._routine(n))]
        self.named = {routine.name: routine for routine in self.routines}
        self.starts = [routine.node.start_byte for routine in self.routines]

    def defined(self, name: str, at: int) -> str:
        """What a macro is defined as where this byte stands; "" where that is not known, or depends on the preprocessor."""
        texts = [(start, text) for start, text in self.unit.definitions.get(name, ()) if len(text) <= LONGEST]
        if len({text for _, text in texts}) > 1:
            texts = [(start, text) for start, text in texts if start < at][-1:] if self.unit.is_undefined(name) else []
        return texts[-1][1].decode("utf-8", "replace") if texts else ""

    def size_of(self, name: str) -> int | None:
        """The bytes of a type: a number, a vector, or a struct of these; None where it is not known."""
        if len({text for _, text in self.unit.definitions.get(name, ())}) > 1:
            return None
        if known := self.type_named(name):
            element = known.rstrip("0123456789")
            lanes = int(known[len(element) :] or 1)
            return BITS[element] // 8 * (4 if lanes == 3 else lanes)
        body = part(self.structs.get(self.aliases.get(name, name)), "body")
        members = (
            [v for field in self.unit.of("field_declaration", inside=body) for v in self.declared(field)]
            if body
            else []
        )
        if name in self.open:
            return None  # it holds itself
        self.open.add(name)
        sizes = [self.size_of(said(part(v.node, "type"))) for v in members]
        counts = [[self.number(size) for size in v.sizes] for v in members]
        self.open.remove(name)
        if not members or None in sizes or any(None in c for c in counts) or any(v.is_pointer for v in members):
            return None
        widest, end = 1, 0
        for size, count in zip(sizes, counts, strict=True):
            step = min(size or 1, 16) if (size or 1) & ((size or 1) - 1) == 0 else 4
            widest, end = max(widest, step), -(-end // step) * step + (size or 0) * prod(n or 0 for n in count)
        return -(-end // widest) * widest

    @cached_property
    def fields(self) -> dict[str, str]:
        """The type of each member of a struct or union; "" where two of one name differ."""
        found: dict[str, str] = {}
        for node in self.unit.of("field_declaration"):
            for variable in self.declared(node):
                same = found.setdefault(variable.name, variable.type) == variable.type
                found[variable.name] = variable.type if same and not variable.is_pointer else ""
        return found

    @cached_property
    def with_barrier(self) -> frozenset[str]:
        """The functions of this program in which all items of a group wait for one another."""
        calls = {r.name: {callee(c) for c in self.unit.of("call_expression", inside=r.body)} for r in self.routines}
        found = {name for name, made in calls.items() if any(map(self.is_barrier, made))}
        while more := {name for name, made in calls.items() if made & found} - found:
            found |= more
        return frozenset(found)

    def kernels(self) -> Iterator[Routine]:
        """The kernels."""
        yield from (routine for routine in self.routines if routine.is_kernel)

    @cached_property
    def barriers(self) -> frozenset[str]:
        """The macros that stand for a barrier, or for one under some condition."""
        return self.macros.mentioning(HAS_BARRIER)

    @cached_property
    def of_item(self) -> frozenset[str]:
        """The macros that ask which item it is."""
        return self.macros.mentioning(ASKS_ITEM)

    @cached_property
    def leaving(self) -> frozenset[str]:
        """The macros that return, or may."""
        return self.macros.mentioning(RETURNS)

    def is_barrier(self, name: str) -> bool:
        """Whether the items of a group wait for one another where this is called, or stands alone."""
        is_elsewhere = SYNC_MACRO.match(name) is not None and name not in self.macros.texts
        return BARRIER.match(name) is not None or name in self.barriers or is_elsewhere

    def each(self, *types: str) -> Iterator[tuple[Routine, Node]]:
        """The nodes of these types that stand in a function, each with it."""
        for node in self.unit.of(*types):
            routine = self.routine(node)
            if routine is not None and node.start_byte >= routine.body.start_byte:
                yield routine, node

    def inside(self, node: Node, *types: str) -> list[Node]:
        """The nodes of these types at or below a node."""
        return self.unit.of(*types, inside=node)

    def routine(self, node: Node) -> Routine | None:
        """The function in which a node stands."""
        return self.routine_at(node.start_byte)

    def routine_at(self, byte: int) -> Routine | None:
        """The function in which a byte of the text stands."""
        at = bisect_right(self.starts, byte) - 1
        return self.routines[at] if at >= 0 and byte < self.routines[at].node.end_byte else None

    def written(self, node: Node) -> str:
        """A node as the file has it, with what was blanked for the parser."""
        return self.unit.original[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def quote(self, node: Node) -> str:
        """A node as a message shows it."""
        return f"`{textwrap.shorten(self.written(node).replace(BACKSLASH, ' '), 72, placeholder=' ...')}`"

    def before(self, node: Node) -> str:
        """What stands between the node before this one and its end in the file's own text: its qualifiers are there."""
        previous = node.prev_sibling
        inside = node.parent is not None and node.parent.parent is not None  # the root begins at its first word
        start = previous.end_byte if previous is not None else node.parent.start_byte if inside else 0
        return self.unit.original[start : node.end_byte].decode("utf-8", "replace")

    def _routine(self, node: Node) -> Routine | None:
        declarator = part(node, "declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = part(declarator, "declarator")
        body, name = part(node, "body"), said(part(declarator, "declarator"))
        if declarator is None or body is None or not NAME.fullmatch(name):
            return None
        listed = part(declarator, "parameters")
        given = [v for p in listed.named_children if p.type == "parameter_declaration" for v in self.declared(p)]
        whole = self.before(node)
        head = whole[: len(whole.encode()) - (node.end_byte - body.start_byte)]
        front = whole[: len(whole.encode()) - (node.end_byte - declarator.start_byte)]
        kernel = IS_KERNEL.search(re.sub(r"/\*.*?\*/|//.*", "", front, flags=re.DOTALL))
        returns = self.type_named(said(part(node, "type")))
        made = Routine(name, node, body, kernel is not None, returns, tuple(given), head)
        for variable in (*given, *(v for d in self.inside(body, "declaration") for v in self.declared(d))):
            known = made.variables.get(variable.name)
            if known is not None and (
                known.others or (known.type, known.is_pointer) != (variable.type, variable.is_pointer)
            ):
                every = (*(known.others or (known,)), variable)
                variable = Variable(variable.name, "", variable.space, node=variable.node, others=every)
            made.variables[variable.name] = variable
        return made

    def declared(self, node: Node) -> Iterator[Variable]:
        """The variables of a declaration, a parameter or a member."""
        kind = part(node, "type")
        text = self.before(node)
        space = next((s for s in re.findall(r"\b(?:__)?(\w+)\b", text.split("=")[0]) if s in SPACES), "")
        if not space:
            words = {self.aliases.get(w, "") for w in re.findall(r"\w+", text.split("=")[0])}
            space = next((s for s in SPACES if words & {s, f"__{s}"}), "")
        if not space:
            front = text.partition(said(kind))[0] if said(kind) else ""
            space = found[1].lower() if (found := SPACE_MACRO.search(front)) else "private"
        for declarator in node.children_by_field_name("declarator"):
            one, pointer, sizes = declarator, False, []
            while one is not None and one.type not in ("identifier", "field_identifier"):
                if one.type == "array_declarator":
                    sizes.append(part(one, "size"))
                elif one.type == "function_declarator":
                    one = None
                    break
                pointer = pointer or one.type == "pointer_declarator"
                one = part(one, "declarator")
            if one is not None:
                yield Variable(
                    said(one), self.type_named(said(kind)), space, pointer, tuple(sizes[::-1]), node, "volatile" in text
                )

    def type_named(self, name: str) -> str:
        """A type without aliases: one of `SCALARS`, with a length where it is a vector; "" where it is not known."""
        for _ in range(8):
            name = re.sub(r"\b(const|volatile|restrict|__?\w*const\w*)\b", "", name).strip()
            name = " ".join(name.split())
            name = UNSIGNED.get(name, SIZES.get(name, name))
            if TYPE.fullmatch(name):
                return name
            if name.removeprefix("atomic_") in SCALARS:
                return name.removeprefix("atomic_")
            if name not in self.aliases:
                return ""
            name = self.aliases[name]
        return ""

    def variable(self, node: Node, names: Mapping[str, Variable]) -> Variable | None:
        """The variable that a name stands for: of several, that of the innermost block around it."""
        known = names.get(said(node))
        if known is None or not known.others:
            return known
        around = [(scope(v.node), v) for v in known.others if v.node.start_byte <= node.start_byte]
        inside = [(place.start_byte, n, v) for n, (place, v) in enumerate(around) if node.end_byte <= place.end_byte]
        return max(inside)[2] if inside else known

    def type(self, node: Node | None, names: Mapping[str, Variable]) -> str:
        """The type of an expression; "" where it is not known or a pointer."""
        if node is None:
            return ""
        kind = node.type
        if kind == "parenthesized_expression":
            return self.type(node.named_children[-1] if node.named_children else None, names)
        if kind == "number_literal":
            return of_literal(said(node))
        if kind == "identifier":
            known = self.variable(node, names)
            if known is not None:
                return "" if known.is_pointer or known.sizes else known.type
            value = self.aliases.get(said(node), "")
            return of_literal(value) if re.match(r"[-.\d]", value) else self.expanded(said(node), names)
        if kind == "subscript_expression":
            return self._element(part(node, "argument"), names)
        if kind == "pointer_expression":
            return self._element(part(node, "argument"), names) if said(node).startswith("*") else ""
        if kind == "field_expression":
            name = said(part(node, "field"))
            owner = self.type(part(node, "argument"), names)
            if owner[-1:].isdigit():
                return owner.rstrip("0123456789") if re.fullmatch(r"[xyzw]|[sS][\da-fA-F]", name) else ""
            return self.fields.get(name, "")
        if kind == "cast_expression":
            return self.cast(node)
        if kind == "call_expression":
            return self._called(node, names)
        if kind in ("unary_expression", "update_expression"):
            return "int" if said(node).startswith("!") else self.type(part(node, "argument"), names)
        if kind == "assignment_expression":
            return self.type(part(node, "left"), names)
        if kind == "conditional_expression":
            sides = (part(node, side) for side in ("consequence", "alternative"))
            return wider(*(self.type(side, names) for side in sides))
        if kind == "binary_expression":
            left, right = (self.type(part(node, side), names) for side in ("left", "right"))
            return "int" if sign(node) in COMPARISONS else left if sign(node) in ("<<", ">>") else wider(left, right)
        return ""

    def _element(self, node: Node | None, names: Mapping[str, Variable]) -> str:
        """The type of what a pointer or an array holds."""
        if node is None:
            return ""
        if node.type == "identifier":
            known = self.variable(node, names)
            return known.type if known is not None and (known.is_pointer or known.sizes) else ""
        if node.type == "cast_expression":
            return self.type_named(said(part(node, "type")).split("*")[0])
        if node.type == "parenthesized_expression" and node.named_children:
            return self._element(node.named_children[-1], names)
        if node.type == "binary_expression":
            return self._element(part(node, "left"), names)
        return self._element(part(node, "argument"), names) if node.type == "subscript_expression" else ""

    def cast(self, node: Node) -> str:
        """The type to which a node casts, `(ulong)x` or `(ulong)(x)`, to the grammar a call; "" where it does not."""
        if node.type == "cast_expression":
            target = said(part(node, "type"))
        else:
            function = part(node, "function")
            target = (
                said(function)[1:-1] if function is not None and function.type == "parenthesized_expression" else ""
            )
        return "" if "*" in target else self.type_named(target)

    def _called(self, node: Node, names: Mapping[str, Variable]) -> str:
        if made := self.cast(node):
            return made
        name = callee(node)
        if found := re.match(r"(?:as|convert)_([a-z]+\d*)(?:_sat)?(?:_rt[ezpn])?$", name):
            return self.type_named(found[1])
        if ITEM.match(name) or OF_SIZE.match(name):
            return "uint" if name == "get_work_dim" else "ulong"
        if name in self.named:
            return self.named[name].returns
        if name in self.macros.texts:
            return self.expanded(name, names)
        given = arguments(node)
        if COMPARE_AND_SWAP.match(name) and "exchange" in name:
            return "int"
        if re.match(r"atom(ic)?_", name):
            return self._element(given[0] if given else None, names) or "int"
        if name in ("isnan", "isinf", "isfinite", "isequal", "isnotequal", "vload_half"):
            return "float" if name == "vload_half" else "int"
        return self.type(given[0], names) if given and name in OF_FIRST else ""

    def expanded(self, name: str, names: Mapping[str, Variable]) -> str:
        """The type of the expression that a macro stands for."""
        if name in self.open:
            return ""
        self.open.add(name)
        hidden = {n: v for n, v in names.items() if n not in self.macros.parameters.get(name, ())}
        made = {self.type(meaning, hidden) for meaning in self.macros.meanings(name)}
        self.open.remove(name)
        return made.pop() if len(made) == 1 else ""

    def number(self, node: Node | None) -> int | None:
        """The value of an expression of constants, macros among them; None where it is not known."""
        return None if node is None else self.value(said(node), node.start_byte)

    def value(self, text: str, at: int = 0) -> int | None:
        """The value of such an expression as it is written, at a byte."""

        def meant(found: re.Match[str]) -> str:
            known = self.defined(found[0], at)
            return f"({known})" if known else found[0]

        text = SIZEOF.sub(lambda m: str(self.size_of(m[1]) or m[0]), text)
        for _ in range(8):
            new = WORD.sub(meant, text)
            if new == text:
                break
            text = new[:LONGEST]
        return constant(text)
