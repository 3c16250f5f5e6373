"""Sample sets of PyTorch on which the device is known to differ from the CPU, and why; each is checked to differ still."""

import torch

GAPS: dict[tuple[str, torch.dtype], str] = {
    (
        "as_strided.partial_views",
        torch.float32,
    ): "the inputs are windows of a larger storage, of which a copy to the device keeps only what can be seen",
    ("sparse.mm.reduce", torch.float32): "no sparse layouts",
}
