"""einops: tensors in, a tensor out, with as many dimensions as the right side of the pattern has."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project.syntax import text_of
from syncscope.tensors.call import Call
from syncscope.tensors.facts import items, sequence, tensor

_REARRANGED = ("rearrange", "repeat", "reduce")


def call(call: Call) -> Fact:
    """A function of einops."""
    name = call.name.removeprefix("einops.")
    if name == "unpack":
        return items(call.first)
    if name not in (*_REARRANGED, "einsum", "pack") or not call.args:
        return UNKNOWN
    held = call.first_tensor()
    known = held or tensor(confidence=2)
    result = tensor(
        known.dtype, known.device, max(known.confidence, 2), call.node, held, known.shape, _ndim(call.nodes)
    )
    return sequence(result, UNKNOWN) if name == "pack" else result


def anywhere(call: Call) -> Fact | None:
    """The same functions where another library hands them on."""
    return call.args[0] if call.word in _REARRANGED and "einops" in call.name and call.args else None


def _ndim(nodes: list[ast.expr]) -> int | None:
    pattern = text_of(nodes[1]) if len(nodes) > 1 else None
    if pattern is None or "->" not in pattern or "..." in pattern:
        return None
    depth = count = 0
    for word in pattern.split("->")[1].replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            count += depth == 0
            depth += 1
        elif word == ")":
            depth -= 1
        elif depth == 0:
            count += 1
    return count
