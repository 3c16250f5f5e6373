"""float16 and bfloat16 for operators whose kernels know neither: run in float32 on copies, and rounded at the end.

Pointwise work, copies, reductions, products, convolutions, norms, softmax, pooling and lists of tensors load and store halves
themselves and never come here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from syncscope.kernels import storage
from syncscope.kernels.fallback import NotNative

HALVES = (torch.float16, torch.bfloat16)


def in_float(
    op: torch._ops.OpOverload, kernel: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> object:
    """Runs an operator's kernel on float32 copies of its half-precision tensors, writes back what it changes, rounds results.

    Raises:
        NotNative: there are no such tensors, or the kernel cannot do it in float32 either.
    """
    wide: dict[int, torch.Tensor] = {}  # id of a tensor in half precision -> its copy
    kinds: list[torch.dtype] = []

    def widened(value: object) -> object:
        if isinstance(value, torch.Tensor):
            if value.dtype not in HALVES or value.device.type != storage.NAME:
                return value
            if id(value) not in wide:
                wide[id(value)] = value.float()
                kinds.append(value.dtype)
            return wide[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(map(widened, value))
        return torch.float32 if value in HALVES else value

    inside = tuple(map(widened, args)), {name: widened(value) for name, value in kwargs.items()}
    if not wide:
        raise NotNative
    result = kernel(*inside[0], **inside[1])
    schema = op._schema.arguments
    named = {**{a.name: v for a, v in zip(schema, args, strict=False)}, **kwargs}
    originals: dict[int, torch.Tensor] = {}
    for argument in schema:
        written = argument.alias_info is not None and argument.alias_info.is_write
        value = named.get(argument.name)
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(tensor, torch.Tensor) and id(tensor) in wide:
                originals[id(wide[id(tensor)])] = tensor
                if written:
                    copy = wide[id(tensor)]
                    if copy.shape != tensor.shape:
                        storage.resize(tensor, copy.shape)
                    tensor.copy_(copy)
    asked = next((x for x in kwargs.values() if isinstance(x, torch.dtype)), kinds[0])
    return _rounded(result, asked, originals)


def _rounded(value: object, dtype: torch.dtype, originals: dict[int, torch.Tensor]) -> object:
    if isinstance(value, torch.Tensor):
        if id(value) in originals:
            return originals[id(value)]
        return value.to(dtype) if value.dtype is torch.float32 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_rounded(v, dtype, originals) for v in value)
    return value
