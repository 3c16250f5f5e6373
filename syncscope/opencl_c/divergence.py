"""What differs between the items of one work-group, as far as it can be seen: unknown counts as equal, and stays silent.

A function is gone through as it runs. A value is "" where all items have the same; else it says what made it differ, and two of
one origin are apart by the same in every item: behind `end = begin + 16` all of them leave `while (begin++ < end)` together.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from syncscope.opencl_c.facts import ITEM, KernelProgram, Routine
from syncscope.opencl_c.nodes import COMPARISONS, FENCED, arguments, assigned, base, callee
from syncscope.opencl_c.text import Node, part, said, sign, walk

BRANCHES = {"if_statement", "switch_statement", "conditional_expression", *FENCED}
CONDITIONS = {"preproc_if", "preproc_ifdef", "preproc_elif"}
LEAVES = {"break_statement", "continue_statement", "return_statement", "goto_statement"}
SHARED = ("local", "global", "constant")
UNLIKE = "?"  # differs, and is related to nothing
ROUNDS = 4  # of a loop, until nothing new differs
LONGEST = 400  # bytes of an expression that is looked at as a text
ROUNDED = re.compile(  # (n / WG) * WG, (n / WG + 1) * WG, what is so often the size of a group
    r"/\s*(\w+(?:\(\d\))?)\s*(?:[+-]\s*\d+\s*)?\)\s*\*\s*\1|get_local_size\s*\(\s*\d\s*\)\s*(?:\*|$)"
)
REQUIRED = re.compile(r"reqd_work_group_size\s*\(([^()]*)\)")
ALIKE = re.compile(r"(sub|work)_group_(all|any|broadcast|reduce)")


NESTED = 12  # loops around one another, of which each is gone through more than once
DEEPEST = 8  # functions that call one another, of which each is looked at


def divergence(
    program: KernelProgram, routine: Routine, given: frozenset[str] = frozenset(), depth: int = 0
) -> Divergence:
    """What differs in a function, for all the rules that ask: if these parameters do."""
    known: dict[tuple[Routine, frozenset[str]], Divergence | None] = program.divergences
    found = known.get((routine, given))
    if found is None:
        known[routine, given] = None
        found = known[routine, given] = Divergence(program, routine, given, depth)
    return found


class Divergence:
    """Of one function: which of its expressions have another value in each item. `given` are the parameters that do."""

    def __init__(self, program: KernelProgram, routine: Routine, given: frozenset[str], depth: int) -> None:
        self.program = program
        self.routine = routine
        self.depth = depth  # functions on the way here
        self.values: dict[int, str] = {}  # of each expression, by its node
        self.state: dict[str, str] = dict.fromkeys(given, UNLIKE)  # of each name, where the walk is
        self.whole: set[str] = set()  # the names that hold a multiple of the size of a group
        self.numbers: dict[str, int] = {}  # what a constant is
        self.declared: dict[str, str] = {}  # the names of the innermost block, each with what it stood for outside
        self.changed: set[str] = set()  # what was assigned since the innermost branch began
        self.open: set[str] = set()  # the macros that are being looked at
        self.around = 0  # loops around the statement, where the walk is
        self.leaves: dict[int, list[Node]] = {}  # each `break` and `continue`, by its loop
        self.returns: list[Node] = []
        for leave in (node for node in walk(routine.body) if node.type in LEAVES):
            loop = ends(leave)
            (self.returns if loop is None else self.leaves.setdefault(loop.id, [])).append(leave)
        self.returns.sort(key=attrgetter("start_byte"))
        self.run(routine.body)

    def differs(self, node: Node | None) -> bool:
        """Whether an expression has another value in each item."""
        return node is not None and bool(self.values.get(node.id))

    @property
    def returned(self) -> str:
        """What the value that it returns hangs on."""
        returns = self.program.inside(self.routine.body, "return_statement")
        values = {self.values.get(child.id, "") for one in returns for child in one.named_children[:1]}
        if len(returns) == 1 and not any(map(self.guards, returns)):
            (value,) = values or {""}
            return value if value.startswith("item") else UNLIKE if value else ""
        return UNLIKE if any(values) or any(map(self.guards, returns)) else ""

    def guards(self, node: Node, within: Node = None) -> list[Node]:
        """The statements around a node that items enter, or go through, differently; innermost first."""
        found = []
        child, parent = node, node.parent
        while parent is not None and child not in (self.routine.body, within):
            test = part(parent, "condition") if parent.type in BRANCHES else None
            if test is not None and child not in (test, part(parent, "initializer")) and self.differs(test):
                found.append(parent)
            child, parent = parent, parent.parent
        return found

    def run(self, node: Node | None) -> None:
        """Goes through a statement; behind it the state is that after it."""
        if node is None:
            return
        kind = node.type
        if kind in ("if_statement", *CONDITIONS):
            self.apart(partial(self.either, node), lambda: self.differs(part(node, "condition")))
        elif kind in FENCED or kind == "switch_statement":
            self.block(partial(self.rounds, node))
        elif kind == "compound_statement":
            self.block(partial(self.each, node.named_children))
        elif kind == "declaration":
            for one in node.children_by_field_name("declarator"):
                self.declared.setdefault(base(one), self.state.get(base(one), ""))
                self.assign(base(one), self.value(part(one, "value")), one)
                if (number := self.program.number(part(one, "value"))) is not None and "const" in said(node):
                    self.numbers[base(one)] = number
                if ROUNDED.search(said(part(one, "value"))[:LONGEST]):
                    self.whole.add(base(one))
        elif kind.endswith(("_statement", "_clause")) or kind == "preproc_else":
            self.each(node.named_children)
        else:
            self.value(node)

    def each(self, nodes: list[Node]) -> None:
        """Goes through statements one after another."""
        for node in nodes:
            self.run(node)

    def block(self, inside: Callable[[], object]) -> None:
        """Goes through what has names of its own."""
        outside, self.declared = self.declared, {}
        inside()
        self.state |= self.declared
        self.changed -= self.declared.keys()
        self.declared = outside

    def apart(self, inside: Callable[[], None], differs: Callable[[], bool]) -> None:
        """Goes through what some items may leave out: then all that is assigned there differs."""
        outside, self.changed = self.changed, set()
        inside()
        if differs():
            self.state |= dict.fromkeys(self.changed, UNLIKE)
        self.changed |= outside

    def either(self, node: Node) -> None:
        """Both branches of an `if`, each from the same state."""
        self.value(part(node, "condition"))
        other = part(node, "alternative")
        before = dict(self.state)
        if node.type == "if_statement":
            self.run(part(node, "consequence"))
        else:
            self.each([child for child in node.named_children if child != other])
        after, self.state = self.state, before
        self.run(other)
        self.join(after)

    def rounds(self, node: Node) -> None:
        """A loop, until nothing new differs; a `switch` is one that ends."""
        test, body = part(node, "condition"), part(node, "body")
        leaves = self.leaves_of(node)

        def some(kinds: set[str]) -> bool:
            return any(leave.type in kinds and self.guards(leave, node) for leave in leaves)

        def round_() -> None:
            self.value(test)
            self.apart(partial(self.run, body), lambda: some({"continue_statement"}))
            self.value(part(node, "update"))

        def all_() -> None:
            for _ in range(ROUNDS if self.around <= NESTED else 1):
                before = dict(self.state)
                round_()
                self.join(before)
                if self.state == before:
                    break

        self.run(part(node, "initializer"))
        self.around += 1
        self.apart(all_, lambda: self.differs(test) or some(LEAVES - {"continue_statement"}))
        self.around -= 1

    def leaves_of(self, loop: Node) -> list[Node]:
        """What may leave a loop or a `switch`, or a pass of it."""
        first, last = (
            bisect_left(self.returns, at, key=attrgetter("start_byte")) for at in (loop.start_byte, loop.end_byte)
        )
        return [*self.leaves.get(loop.id, ()), *self.returns[first:last]]

    def join(self, other: dict[str, str]) -> None:
        """The state where two ways meet."""
        for name in self.state.keys() | other.keys():
            if self.state.get(name, "") != other.get(name, ""):
                self.state[name] = UNLIKE

    def assign(self, name: str, value: str, node: Node) -> None:
        """A name stands for something else."""
        variable = self.routine.variables.get(name)
        if variable is not None and variable.space in SHARED and not variable.is_pointer:
            return
        if value == UNLIKE:
            value = f"@{node.start_byte}"  # and what an earlier round made here is no relation any more
            self.state |= {other: UNLIKE for other, its in self.state.items() if its == value}
        self.state[name] = value
        self.changed.add(name)

    def value(self, node: Node | None) -> str:
        """What an expression's value hangs on in each item; what it assigns is assigned."""
        if node is None:
            return ""
        found = self.values[node.id] = self.evaluated(node)
        return found

    def evaluated(self, node: Node) -> str:
        """As `value`, of an expression by its kind."""
        kind = node.type
        if kind == "identifier":
            return self.state[said(node)] if said(node) in self.state else self.expanded(said(node))
        if kind in ("parenthesized_expression", "cast_expression"):
            return self.value(part(node, "value") or (node.named_children or [None])[-1])
        if kind == "binary_expression":
            return self.operation(node)
        if kind in ("assignment_expression", "update_expression"):
            return self.assignment(node)
        if kind == "conditional_expression":
            test, yes, no = (self.value(part(node, each)) for each in ("condition", "consequence", "alternative"))
            return UNLIKE if test or yes != no else yes
        if kind == "call_expression":
            return self.called(node)
        return UNLIKE if "".join(map(self.value, node.named_children)) else ""

    def called(self, node: Node) -> str:
        """The value of a call; what it writes where its arguments point is assigned."""
        name, listed = callee(node), arguments(node)
        given = [self.value(one) for one in listed]
        if ITEM.match(name):
            return "" if self.is_alone(node) else f"item{said(part(node, 'arguments'))}"
        if name == "get_sub_group_id":
            return UNLIKE
        inner = self.inside(name)
        for place, one in enumerate(listed):
            if one.type == "pointer_expression" and said(one)[:1] == "&":
                parameter = inner.routine.parameters[place : place + 1] if inner is not None else ()
                if any(given) or (inner is not None and parameter and inner.state.get(parameter[0].name)):
                    self.assign(base(one), UNLIKE, one)
        own = inner.returned if inner is not None else self.expanded(name)
        if any(given):
            return "" if ALIKE.match(name) else UNLIKE
        return UNLIKE if name.startswith(("atomic_", "atom_")) else own

    def inside(self, name: str) -> Divergence | None:
        """What differs in a function of the program; None in one that calls itself, or lies too deep."""
        routine = self.program.named.get(name)
        if routine is None or self.depth >= DEEPEST:
            return None
        is_open = self.program.divergences.get((routine, frozenset()), self) is None
        return None if is_open else divergence(self.program, routine, depth=self.depth + 1)

    def expanded(self, name: str) -> str:
        """What the value of a macro hangs on by itself; of one that is defined in several ways, what it does in all of them."""
        if name not in self.program.of_item or name in self.open:
            return ""
        outside, self.state = self.state, self.state | dict.fromkeys(self.program.macros.parameters[name], "")
        self.open.add(name)
        made = {self.value(meaning) for meaning in self.program.macros.meanings(name)}
        self.open.remove(name)
        self.state = outside
        return made.pop() if len(made) == 1 else ""

    def operation(self, node: Node) -> str:
        """The value of an operation of two."""
        left, right = part(node, "left"), part(node, "right")
        one, other = self.value(left), self.value(right)
        if not one and not other:
            return ""
        what = sign(node)
        if node.end_byte - node.start_byte < LONGEST:
            if what in ("/", ">>") and (b"get_global_id" in node.text or b"get_local_size" in right.text):
                return ""  # the number of the group, most often
            if what in ("<", ">=") and (
                said(right) in self.whole or ROUNDED.search(said(right)) or self.is_multiple(right)
            ):
                return ""  # whole groups are on one side of it
        if one == other != UNLIKE and (what == "-" or what in COMPARISONS - {"&&", "||"}):
            return ""
        if what == "+" and not (one and other):
            return one or other
        return one if what == "-" and not other else UNLIKE

    def is_multiple(self, node: Node) -> bool:
        """Whether a number is a multiple of the size that the group must have, in each dimension."""
        found = REQUIRED.search(self.routine.head)
        sizes = (
            [self.program.value(size, self.routine.node.start_byte) for size in found[1].split(",")] if found else []
        )
        number = self.program.number(node) or self.numbers.get(said(node)) or 0
        return bool(sizes) and number > 0 and all(size and number % size == 0 for size in sizes)

    def assignment(self, node: Node) -> str:
        """The value of an assignment, or of `i++`."""
        target, given = assigned(node)
        made, what = self.value(given), sign(node)
        if target is None:
            target, what = part(node, "argument"), "+="
        held, name = self.value(target), base(target)
        if what in ("+=", "-=") and not made:
            made = held
        elif what != "=" and held:
            made = UNLIKE
        if target.type == "identifier":
            self.assign(name, made, node)
        elif made or held:
            variable = self.routine.variables.get(name)
            if variable is not None and variable.space not in SHARED:
                self.state[name] = UNLIKE
                self.changed.add(name)
        return made

    def is_alone(self, call: Node) -> bool:
        """Whether the group has one item in the dimension that is asked for; a guess where only others are counted locally."""
        dimension = said(part(call, "arguments")).strip("() ")
        if not dimension.isdigit():
            return False
        if found := REQUIRED.search(self.routine.head):
            sizes = found[1].split(",")
            return int(dimension) < len(sizes) and sizes[int(dimension)].strip() == "1"
        counted = set(re.findall(r"get_local_(?:id|size)\s*\(\s*(\d)\s*\)", said(self.routine.body)))
        return bool(counted) and dimension not in counted


def ends(leave: Node) -> Node | None:
    """The loop or `switch` that a `break` or a `continue` speaks of; None of a `return`, which speaks of all of them."""
    kinds = {"break_statement": FENCED | {"switch_statement"}, "continue_statement": FENCED}.get(leave.type, set())
    node = leave
    while node is not None and node.type not in kinds:
        node = node.parent
    return node
