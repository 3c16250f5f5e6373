"""How far what-ifs were off in loops that were changed for real, and so how far the next one may be: split conformal.

Of `n` loops that no rule was fitted to, the k-th smallest error, k = ceil((n + 1) * SHARE), holds for the next loop of the same
kind in at least SHARE of all cases (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005). An error is
counted beyond `OF_SAVING` of what was said, since large savings are off by more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SHARE = 0.8  # of the next loops that an interval holds
OF_SAVING = 0.1  # of the saving: how much of an error grows with it
MEASURED = (  # (said, true) parts of a step that went, `benchmarks/what_if_truth.py` on an H100
    (0.841, 0.906),  # actor and critic: a CUDA graph
    (0.287, 0.270),  # VAE: fused
    (0.050, 0.147),  # DCGAN: fused
    (0.135, 0.051),  # word model: _foreach_add_
    (0.183, 0.232),  # MobileNet with an average in Python: _foreach_lerp_
    (0.787, 0.780),  # ResNet-18: 8 workers
    (0.368, 0.442),  # Transformer: 4 workers
    (0.678, 0.690),  # uploads: pinned
    (0.070, 0.069),  # a classifier that logs: no log
    (0.687, 0.803),  # ResNet-18, small images: a CUDA graph
    (0.819, 0.883),  # GCN of PyG: a CUDA graph
    (0.816, 0.839),  # GraphSAGE of PyG: a CUDA graph
    (0.783, 0.912),  # LSTM cells over sines: a CUDA graph
    (0.644, 0.684),  # fast neural style: reduce-overhead
    (0.781, 0.732),  # vision transformer: reduce-overhead
    (0.758, 0.701),  # BERT: reduce-overhead
    (0.381, 0.445),  # EfficientNet without foreach: fused
    (0.049, 0.058),  # DQN: _foreach_clamp_min_, _foreach_clamp_max_
    (0.185, 0.145),  # twin critics and their targets: _foreach_lerp_
    (0.359, 0.233),  # siamese network: 4 workers
    (0.308, 0.281),  # imagenet: pinned
)


def margin(pairs: Sequence[tuple[float, float]] = MEASURED) -> float:
    """Parts of a step by which the next what-if may be off beyond `OF_SAVING` of it; 1 where the `pairs` are too few."""
    rank = math.ceil((len(pairs) + 1) * SHARE)
    if rank > len(pairs):
        return 1.0
    return max(0.0, sorted(abs(true - said) - OF_SAVING * abs(said) for said, true in pairs)[rank - 1])
