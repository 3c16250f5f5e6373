"""Whether float32 is multiplied in TF32, once by tensor cores, or three times, for its own precision: PyTorch's settings say.

Products of matrices follow what PyTorch says of `cuda`'s matmul (`torch.backends.cuda.matmul.allow_tf32`, or
`torch.set_float32_matmul_precision`; as PyTorch comes, its own precision), convolutions and the steps of LSTMs what it says of
`cudnn` (`torch.backends.cudnn.allow_tf32`; as it comes, TF32), both also by the newer `fp32_precision`. `torch.ocl.allow_tf32`
overrides them. Where no tensor cores serve the device nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from syncscope.kernels.generate import tensor_cores

_says: Callable[[str, str], str] | None = getattr(torch._C, "_get_fp32_precision_getter", None)  # none before torch 2.9


def products() -> bool:
    """Whether products of matrices are made in TF32."""
    if not tensor_cores.serve(torch.float32):
        return False
    ours = _override()
    if ours is not None or _says is None:
        return bool(torch.backends.cuda.matmul.allow_tf32 if ours is None else ours)
    return _says("cuda", "matmul") == "tf32"


def convolutions() -> bool:
    """Whether convolutions are."""
    return _of_cudnn("conv")


def recurrent() -> bool:
    """Whether products of recurrent networks' states are."""
    return _of_cudnn("rnn")


def _of_cudnn(what: str) -> bool:
    if not tensor_cores.serve(torch.float32):
        return False
    ours = _override()
    if ours is not None or _says is None:
        return bool(torch.backends.cudnn.allow_tf32 if ours is None else ours)
    return _says("cuda", what) == "tf32"


def _override() -> bool | None:
    allowed: bool | None = torch.ocl.allow_tf32
    return allowed
