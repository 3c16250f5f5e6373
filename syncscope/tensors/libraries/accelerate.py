"""accelerate and fabric: `gather` gives tensors, prepared models live on the device, loaders bring their batches there,
and a fabric checks the norm that it clips by."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.syntax import last_word
from syncscope.tensors.call import Call
from syncscope.tensors.facts import DEVICE, LOADER, MODULE, OTHER, SEQUENCE, TENSOR, sequence, tensor

PREPARING = frozenset("prepare prepare_data_loader prepare_model setup_dataloaders".split())
OF_FABRIC = frozenset(("setup", "setup_module"))
GATHERING = frozenset("gather gather_for_metrics all_gather reduce pad_across_processes".split())


def method(call: Call) -> Fact | None:
    """A method of what people call an accelerator; None: it is none of these."""
    if call.word == "clip_gradients" and last_word(call.at).endswith("fabric"):
        return _clipped(call)
    if call.word in OF_FABRIC and call.args and last_word(call.at).endswith("fabric"):
        return _prepared(call)
    if call.word in PREPARING and call.args and last_word(call.at).endswith(conventions.LAUNCHERS):
        return _prepared(call)
    if call.word not in GATHERING or not call.args or not last_word(call.at).endswith(conventions.LAUNCHERS):
        return None
    return call.first if call.first.kind in (TENSOR, SEQUENCE) else tensor(confidence=2, why=call.node)


def _prepared(call: Call) -> Fact:
    """What it was given, in the same order. A model is on the device then, and a loader brings its batches there, unless it is
    told not to, by `device_placement=False` or `move_to_device=False`."""
    if call.spread or any(k.arg in ("device_placement", "move_to_device") for k in call.node.keywords):
        return UNKNOWN
    given = [_brought(at, fact) for at, fact in zip(call.nodes, call.args, strict=False)]
    return given[0] if len(given) == 1 else sequence(*given)


def _brought(at: ast.expr, fact: Fact) -> Fact:
    known = fact.ref == LOADER
    if known or (fact.kind is UNKNOWN.kind and conventions.is_loader(last_word(at))):
        return Fact(OTHER, device=DEVICE, confidence=3 if known else 2, ref=LOADER)
    if fact.kind is MODULE:
        return fact.but(device=DEVICE)
    return fact


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
