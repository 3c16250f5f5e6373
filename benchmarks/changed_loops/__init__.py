"""Training loops as the examples of PyTorch, torchvision, transformers and PyG have them, each in two versions: as written, and
with one thing changed that is no wait. `what_if_truth.py` measures both, beside what a recording of the first says.

A file holds the loops of one kind of change."""

from __future__ import annotations

from changed_loops import copied, fewer_launches, fused, graphs, host_work, loaders
from changed_loops.steps import Changed

LOOPS: dict[str, Changed] = {
    name: loop
    for kind in (graphs, fused, fewer_launches, loaders, copied, host_work)
    for name, loop in kind.LOOPS.items()
}
