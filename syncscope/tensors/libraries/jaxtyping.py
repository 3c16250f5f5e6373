"""jaxtyping: `Float[Tensor, "batch channels"]` names the dtype of a tensor."""

from __future__ import annotations

from syncscope.tensors.facts import ANY_DTYPE, BOOL, FLOAT, INT

DTYPES = {
    **dict.fromkeys(("Float", "Inexact"), FLOAT),
    **dict.fromkeys(("Int", "Integer"), INT),
    "Bool": BOOL,
    **dict.fromkeys(("Shaped", "Num"), ANY_DTYPE),
}
