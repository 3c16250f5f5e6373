"""accelerate and fabric: an accelerator's `gather` gives tensors, and a fabric checks the norm that it clips by."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.syntax import last_word
from syncscope.tensors.call import Call
from syncscope.tensors.facts import SEQUENCE, TENSOR, tensor

GATHERING = frozenset("gather gather_for_metrics all_gather reduce pad_across_processes".split())


def method(call: Call) -> Fact | None:
    """A method of what people call an accelerator; None: it is none of these."""
    if call.word == "clip_gradients" and last_word(call.at).endswith("fabric"):
        return _clipped(call)
    if call.word not in GATHERING or not call.args or not last_word(call.at).endswith(conventions.LAUNCHERS):
        return None
    return call.first if call.first.kind in (TENSOR, SEQUENCE) else tensor(confidence=2, why=call.node)


def _clipped(call: Call) -> Fact:
    """`fabric.clip_gradients(..., max_norm=1.0)`: unlike torch, it raises where the norm is not finite, unless told not to."""
    call.frame.work = True
    told = any(
        k.arg in ("error_if_nonfinite", None) and not (isinstance(k.value, ast.Constant) and k.value.value is True)
        for k in call.node.keywords
    )
    if "max_norm" in call.keywords and not told:
        call.emit(Op.CLIP_GRAD_NORM, call.first_node, tensor(confidence=2, why=call.node))
    return UNKNOWN
