"""What a value is used for says what it is: one regular expression over the whole file, far cheaper than a walk."""

from __future__ import annotations

import re
from bisect import bisect_left

from syncscope.tensors.signatures import SHARED, TORCH_ONLY

_ATTRIBUTE = re.compile(r"(?<![\w.\])])((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\.(\w+)\b")
_ARGUMENT = re.compile(
    r"\b(?:torch|F|torch\.nn\.functional|nn\.functional)\.(?:[a-z]\w*\.)?([a-z]\w*)\(\s*([A-Za-z_][\w.]*)\s*[,)]"
)
# First arguments of these say nothing of a tensor.
_NO_TENSOR = frozenset(
    ["tensor", "as_tensor", "from_numpy", "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "device", "load", "save", "is_tensor", "cat", "stack", "manual_seed", "set_default_dtype", "no_grad", "autocast", "compile", "hstack", "vstack", "get_autocast_dtype", "Generator", "set_grad_enabled", "einsum", "finfo", "iinfo", "is_available", "range", "eye", "meshgrid", "concat", "Size", "asarray", "scalar_tensor", "block_diag", "logspace", "normal", "load_state_dict", "set_num_threads", "cuda", "device_count", "is_storage", "broadcast_shapes", "concatenate", "dtype", "checkpoint", "wrap", "no_op", "jit", "trace", "script", "grad", "export", "randperm", "tril_indices", "triu_indices", "result_type"]
)


class Evidence:
    """Names (and dotted names) by the lines where they are used as only a tensor can be."""

    def __init__(self, text: str) -> None:
        strong: list[tuple[int, str]] = []
        weak: list[tuple[int, str]] = []
        ends = _line_ends(text)
        for match in _ATTRIBUTE.finditer(text):
            name, attribute = match.groups()
            if attribute in TORCH_ONLY:
                if not name.startswith(("torch", "F.", "nn.", "np.", "math.", "numpy")) and name != "F":
                    strong.append((bisect_left(ends, match.start()) + 1, name))
            elif attribute in SHARED:
                weak.append((bisect_left(ends, match.start()) + 1, name))
        for match in _ARGUMENT.finditer(text):
            called, name = match.groups()
            if called not in _NO_TENSOR:
                strong.append((bisect_left(ends, match.start()) + 1, name))
        strong.sort()
        self._strong = strong
        self._weak = weak

    def between(self, first: int, last: int) -> dict[str, int]:
        """Names used like a tensor in these lines, by how much that says (1: numpy has it too, 2: only torch)."""
        found: dict[str, int] = {}
        for weight, rows in ((1, self._weak), (2, self._strong)):
            for row in range(bisect_left(rows, (first, "")), len(rows)):
                line, name = rows[row]
                if line > last:
                    break
                found[name] = weight
        return found


def _line_ends(text: str) -> list[int]:
    """Offsets of the line feeds: the line of an offset is one more than the number of ends before it."""
    return [m.start() for m in re.finditer("\n", text)]
