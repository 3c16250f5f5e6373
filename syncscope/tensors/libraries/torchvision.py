"""torchvision: models, boxes of which a number survives that depends on data, and `normalize`, which looks at its deviation."""

from __future__ import annotations

import re

from syncscope.model.fact import Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import DYNAMIC, HOST, INT, MODULE, TENSOR, tensor

_CLASSIFIERS = re.compile(r"torchvision\.models\.[a-z]\w*$")  # those of detection and segmentation give dicts


def call(call: Call) -> Fact | None:
    """A function of torchvision; None: nothing is known of it."""
    first = call.first
    if _CLASSIFIERS.match(call.name):
        return Fact(MODULE, device=HOST, confidence=2, ref=call.name)
    if call.word in ("nms", "batched_nms", "box_nms"):
        held = call.first_tensor() or tensor(confidence=2, why=call.node)
        call.emit(Op.NMS, call.first_node, held)
        return tensor(INT, held.device, 3, call.node, shape=DYNAMIC, ndim=1)
    if call.word == "remove_small_boxes" and call.args:
        held = first if first.kind is TENSOR else tensor(confidence=2, why=call.node)
        call.emit(Op.NMS, call.first_node, held)
        return tensor(INT, first.device, 3, call.node, shape=DYNAMIC, ndim=1)
    if call.name == "torchvision.transforms.functional.normalize" and first.kind is TENSOR:
        call.emit(Op.LIBRARY_READ, call.first_node, first)
        return first
    return None
