"""What a node of OpenCL C says by itself: what is called with what, what is assigned, of what a sum is made."""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.opencl_c.text import Node, part, said, sign

FENCED = {"while_statement", "do_statement", "for_statement"}
COMPARISONS = {"==", "!=", "<", ">", "<=", ">=", "&&", "||"}


def scope(declaration: Node) -> Node:
    """The block in which a declaration holds: of a parameter all of the function."""
    node = declaration.parent
    return node.parent.parent if node.type == "parameter_list" and node.parent.parent is not None else node


def callee(call: Node) -> str:
    """The name of the function that is called; "" where it is none."""
    function = part(call, "function")
    return said(function) if function is not None and function.type == "identifier" else ""


def arguments(call: Node) -> list[Node]:
    """What a call is given."""
    given = part(call, "arguments")
    return [] if given is None else [n for n in given.named_children if n.type != "comment"]


def assigned(node: Node) -> tuple[Node, Node]:
    """What is assigned to at an assignment or a declaration, and what; twice None at anything else."""
    if node.type == "init_declarator":
        return part(node, "declarator"), part(node, "value")
    return (part(node, "left"), part(node, "right")) if node.type == "assignment_expression" else (None, None)


def base(target: Node | None) -> str:
    """The variable that is changed when this is assigned to."""
    while target is not None and target.type != "identifier":
        target = (
            part(target, "argument")
            or part(target, "declarator")
            or (target.named_children[0] if target.named_children else None)
        )
    return said(target)


def operands(node: Node, signs: tuple[str, ...]) -> Iterator[Node]:
    """The terms of a sum, the factors of a product: what stands between these signs, brackets or not."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    if node.type == "binary_expression" and sign(node) in signs:
        yield from operands(part(node, "left"), signs)
        yield from operands(part(node, "right"), signs)
    else:
        yield node
