"""torch_geometric: pools over graphs read the largest number of a graph, where nobody says how many there are."""

from __future__ import annotations

from syncscope.model.fact import Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import FIXED, INT, NONE, TENSOR, tensor

_POOLS = ("global_add_pool", "global_mean_pool", "global_max_pool")


def call(call: Call) -> Fact | None:
    """A function of torch_geometric; None: nothing is known of it."""
    if call.word not in _POOLS or len(call.args) + len(call.keywords) < 2:
        return None
    batch, size = call.given(1, "batch"), call.given(2, "size", NONE)
    known = batch.kind is TENSOR and batch.confidence >= 2
    held = batch if known else tensor(INT, confidence=2, why=call.node)  # it can be nothing else
    if size is NONE and batch is not NONE and not call.spread:
        call.emit(Op.LIBRARY_READ, call.node_of(1, "batch"), held, 2)
    pooled = call.first if call.first.kind is TENSOR else tensor(confidence=2, why=call.node)
    return call.result(pooled, shape=FIXED, ndim=2)
