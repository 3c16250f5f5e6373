"""What differs between the items of one work-group, as far as it can be seen: unknown counts as equal, and stays silent."""

from __future__ import annotations

import re
from functools import cached_property

from syncscope.opencl_c.facts import FENCED, ITEM, Routine, callee, said
from syncscope.opencl_c.text import Node, walk

BRANCHES = {"if_statement", "switch_statement", "conditional_expression", *FENCED}


class Divergence:
    """Of one function: the names whose values differ, and whether an expression does."""

    def __init__(self, routine: Routine) -> None:
        self.routine = routine

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that hold something else in each item."""
        found: set[str] = set()
        made = list(assignments(self.routine.body))
        while True:
            before = len(found)
            for name, is_element, value in made:
                variable = self.routine.variables.get(name)
                shared = is_element and (variable is None or variable.space in ("local", "global", "constant"))
                if shared or name in found:
                    continue
                if self._differs(value, found) or self._guarded(value, found, variable and variable.node):
                    found.add(name)
            if len(found) == before:
                return frozenset(found)

    def differs(self, node: Node | None) -> bool:
        """Whether an expression has another value in each item."""
        return node is not None and self._differs(node, self.names)

    def guards(self, node: Node) -> list[Node]:
        """The statements around a node that items enter, or go through, differently; innermost first."""
        found = []
        child, parent = node, node.parent
        while parent is not None and parent != self.routine.body:
            if parent.type in BRANCHES and child != parent.child_by_field_name("condition"):
                runs_once = child == parent.child_by_field_name("initializer")
                if not runs_once and self.differs(parent.child_by_field_name("condition")):
                    found.append(parent)
            child, parent = parent, parent.parent
        return found

    def _guarded(self, node: Node, names: set[str], declared: Node | None) -> bool:
        """Whether only some of the items that come to a variable's declaration come here."""
        child, parent = node, node.parent
        while parent is not None and parent != self.routine.body:
            test = parent.child_by_field_name("condition") if parent.type in BRANCHES else None
            if declared is not None and parent.start_byte <= declared.start_byte < parent.end_byte:
                return False
            is_inside = child not in (test, parent.child_by_field_name("initializer"))
            if test is not None and is_inside and self._differs(test, names):
                return True
            child, parent = parent, parent.parent
        return False

    def _is_alone(self, call: Node) -> bool:
        """Whether the group has one item in the dimension that is asked for; a guess where only others are counted locally."""
        dimension = said(call.child_by_field_name("arguments")).strip("() ")
        if not dimension.isdigit():
            return False
        if found := REQUIRED.search(self.routine.head):
            sizes = found[1].split(",")
            return int(dimension) < len(sizes) and sizes[int(dimension)].strip() == "1"
        counted = set(re.findall(r"get_local_(?:id|size)\s*\(\s*(\d)\s*\)", said(self.routine.body)))
        return bool(counted) and dimension not in counted

    def _differs(self, node: Node, names: set[str] | frozenset[str]) -> bool:
        todo = [node]
        while todo:
            one = todo.pop()
            if one.type == "identifier" and said(one) in names:
                return True
            if one.type == "call_expression":
                name = callee(one)
                if (ITEM.match(name) and not self._is_alone(one)) or name.startswith(("atomic_", "atom_")):
                    return True
                if ITEM.match(name):
                    continue
            if one.type == "binary_expression":
                sign = said(one.child_by_field_name("operator"))
                if sign in ("/", ">>") and b"get_global_id" in one.text:  # the number of the group, most often
                    continue
                left, right = one.child_by_field_name("left"), one.child_by_field_name("right")
                if sign == "/" and b"get_local_size" in right.text:
                    continue
                if sign in ("<", ">=") and ROUNDED.search(said(right)):  # whole groups are on one side of it
                    continue
                if sign == "-" and b"get_global_id" in left.text and b"get_local_id" in right.text:  # its first item
                    continue
            if one.type == "subscript_expression":
                owner = one.child_by_field_name("argument")
                variable = self.routine.variables.get(said(owner))
                if (
                    variable is not None
                    and variable.space in ("local", "global", "constant")
                    and said(owner) not in names
                ):
                    todo += [n for n in one.named_children if n != owner]
                    continue
            todo += one.named_children
        return False


ROUNDED = re.compile(r"/\s*(\w+)\s*\)\s*\*\s*\1\b")  # (n / WG) * WG
REQUIRED = re.compile(r"reqd_work_group_size\s*\(([^()]*)\)")


def assignments(body: Node) -> list[tuple[str, bool, Node]]:
    """What is assigned in a function: the variable's name, whether only an element of it, and the value."""
    found = []
    for node in walk(body):
        if node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        elif node.type == "init_declarator":
            target, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        elif node.type == "update_expression":
            target = value = node.child_by_field_name("argument")
        else:
            continue
        name = base(target)
        if name and value is not None:
            found.append((name, target.type in ("subscript_expression", "pointer_expression"), value))
    return found


def base(target: Node | None) -> str:
    """The variable that is changed when this is assigned to."""
    while target is not None and target.type != "identifier":
        target = (
            target.child_by_field_name("argument")
            or target.child_by_field_name("declarator")
            or (target.named_children[0] if target.named_children else None)
        )
    return said(target)
