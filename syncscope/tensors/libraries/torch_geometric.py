"""torch_geometric: what reads the largest number of a graph or node where nobody says how many there are, or selects edges."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import BOOL, DYNAMIC, FIXED, FLOAT, HOST, INT, NONE, TENSOR, sequence, tensor

_POOLS = ("global_add_pool", "global_mean_pool", "global_max_pool")
# Of torch_geometric.utils: where the index stands of which the largest is read, and what spares that, each of it.
_SIZED: dict[str, tuple[tuple[int, str], tuple[tuple[int, str], ...]]] = {
    "degree": ((0, "index"), ((1, "num_nodes"),)),
    "one_hot": ((0, "index"), ((1, "num_classes"),)),
    "index_to_mask": ((0, "index"), ((1, "size"),)),
    "scatter": ((1, "index"), ((3, "dim_size"),)),
    "softmax": ((1, "index"), ((3, "num_nodes"),)),
    "add_self_loops": ((0, "edge_index"), ((3, "num_nodes"),)),
    "sort_edge_index": ((0, "edge_index"), ((2, "num_nodes"),)),
    "maybe_num_nodes": ((0, "edge_index"), ((1, "num_nodes"),)),
    "to_dense_batch": ((1, "batch"), ((3, "max_num_nodes"), (4, "batch_size"))),
}
# Those that keep what a mask keeps, or ask a value, whatever they are given ...
_SELECTING = frozenset(
    """remove_self_loops add_remaining_self_loops segregate_self_loops get_self_loop_attr subgraph bipartite_subgraph
    k_hop_subgraph mask_select mask_to_index dense_to_sparse to_dense_adj unbatch unbatch_edge_index get_laplacian
    negative_sampling batched_negative_sampling structured_negative_sampling""".split()
)
# ... and those among them with which graphs are prepared, on the host where nothing else is known.
_PREPARING = frozenset(
    """coalesce to_undirected is_undirected contains_self_loops contains_isolated_nodes remove_isolated_nodes
    structured_negative_sampling_feasible""".split()
)
# else the first
_PLACES = {"subgraph": 1, "bipartite_subgraph": 1, "k_hop_subgraph": 2, "mask_select": 2}
# Those that do so in training only, and where it stands how much is dropped, and the flag.
_DROPPING = {
    "dropout_edge": (1, 3),
    "dropout_adj": (2, 5),
    "dropout_node": (1, 3),
    "dropout_path": (1, 6),
    "add_random_edge": (1, 4),
}
_PAIRS = frozenset("remove_self_loops add_self_loops add_remaining_self_loops dropout_edge dropout_adj".split())
_RANKS = {"batch": 1, "ptr": 1, "edge_type": 1, "node_type": 1, "edge_index": 2}
_SPLITS = frozenset(("train_mask", "val_mask", "test_mask"))


def call(call: Call) -> Fact | None:
    """A function of torch_geometric; None: nothing is known of it."""
    word = call.word
    if word in _POOLS and len(call.args) + len(call.keywords) >= 2:
        return _pooled(call)
    known = word in _SIZED or word in _SELECTING or word in _PREPARING or word in _DROPPING
    if not known or not call.name.startswith("torch_geometric.utils.") or call.spread:
        return None
    if _waits(call):
        place, name = _SIZED[word][0] if word in _SIZED else (_PLACES.get(word, 0), "edge_index")
        index, prepares = call.given(place, name), word in _PREPARING
        sure = index.kind is TENSOR and (index.confidence >= 2 or index.device is HOST or prepares)
        held = index if sure else tensor(INT, confidence=1 if prepares else 2, why=call.node)
        call.emit(Op.LIBRARY_READ, call.node_of(place, name) or call.first_node, held, 2)
    return _given(call)


def split(word: str, source: bytes) -> bool:
    """Whether an attribute is what the data sets of torch_geometric call the bool mask of a split: `data.train_mask`."""
    return word in _SPLITS and b"torch_geometric" in source


def _pooled(call: Call) -> Fact:
    batch, size = call.given(1, "batch"), call.given(2, "size", NONE)
    known = batch.kind is TENSOR and batch.confidence >= 2
    held = batch if known else tensor(INT, confidence=2, why=call.node)  # it can be nothing else
    if size is NONE and batch is not NONE and not call.spread:
        call.emit(Op.LIBRARY_READ, call.node_of(1, "batch"), held, 2)
    pooled = call.first if call.first.kind is TENSOR else tensor(confidence=2, why=call.node)
    return call.result(pooled, shape=FIXED, ndim=2)


def _waits(call: Call) -> bool:
    """Whether a function of torch_geometric.utils waits, by what it is given."""
    word = call.word
    if word in _DROPPING:
        return not any(isinstance(n, ast.Constant) and not n.value for n in _switches(call, *_DROPPING[word]))
    if word not in _SIZED:
        return True
    (place, name), sparing = _SIZED[word]
    if call.given(place, name, NONE) is NONE or (word == "softmax" and call.given(2, "ptr", NONE) is not NONE):
        return False
    return any(call.given(*each, NONE) is NONE for each in sparing)


def _switches(call: Call, share: int, training: int) -> Iterator[ast.expr]:
    """Where it is said how much is dropped, and whether it is trained."""
    for node in (call.node_of(share, "p"), call.node_of(training, "training")):
        if node is not None:
            yield node


def _given(call: Call) -> Fact:
    """What such a function gives, as far as it serves to know."""
    first, word = call.given(0, "edge_index"), call.word
    known = first if first.kind is TENSOR else tensor(confidence=2, why=call.node)
    if word in _PAIRS:
        return sequence(call.result(known, shape=DYNAMIC), UNKNOWN)
    if word == "to_dense_batch":
        mask = tensor(BOOL, known.device, known.confidence, call.node, ndim=2)
        return sequence(call.result(known, shape=FIXED, ndim=None), mask)
    if word == "degree":
        return call.result(known, shape=FIXED, ndim=1, dtype=FLOAT)
    return call.result(known) if word in ("softmax", "scatter") else UNKNOWN


def rank(name: str, source: bytes) -> int | None:
    """How many dimensions people's tensors of this name have where they speak of torch_geometric."""
    known = _RANKS.get(name)
    if known is None or b"torch_geometric" not in source:
        return None
    return None if known == 1 and b"%s[1]" % name.encode() in source else known  # pairs of nodes, in two rows
