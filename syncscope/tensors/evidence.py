"""What a value is used for says what it is: a few regular expressions over the whole file, far cheaper than a walk."""

from __future__ import annotations

import re
from bisect import bisect_left

from syncscope.tensors.signatures import ARRAY_LIKE, TORCH_ONLY

_ATTRIBUTE = re.compile(r"(?<![\w.\])])((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\.([a-zA-Z]\w*)\b(\(?)")
_INDEXED = re.compile(r"(?<![\w.\])])((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\[\s*(?::|\.\.\.|None\s*,)\s*,?")
_ARGUMENT = re.compile(
    r"\b(?:torch|F|torch\.(?:nn\.functional|linalg|special|fft)|nn\.functional)\.([a-z]\w*)\(\s*([A-Za-z_][\w.]*)\s*[,)]"
)
_NUMPY = re.compile(
    r"^\s*(?:import numpy|from numpy|import jax|import tensorflow|import cupy|import pandas)\b", re.MULTILINE
)
_CALLED_ONLY = {"size", "t", "dim"}  # of numpy it is an attribute, of torch a method
_NOT_TENSORS = ("torch", "F.", "nn.", "np.", "math.", "numpy", "random.", "tf.", "jnp.", "lib.")
_BACKWARD = re.compile(r"(?<![\w.\])])((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\.backward\(\s*(?:\)|retain_graph|gradient|create_graph)")
_NEITHER = {"F", "self", "cls", "torch", "np", "model", "data"}
# First arguments of these say nothing of a tensor.
_NO_TENSOR = frozenset(
    """tensor as_tensor from_numpy zeros ones empty full rand randn randint randperm arange linspace device load save
    is_tensor cat stack manual_seed set_default_dtype no_grad autocast compile hstack vstack get_autocast_dtype
    Generator set_grad_enabled einsum finfo iinfo is_available range eye meshgrid concat asarray scalar_tensor
    block_diag logspace normal set_num_threads cuda device_count broadcast_shapes concatenate dtype checkpoint wrap
    jit trace script grad export tril_indices triu_indices result_type div floor_divide pow is_floating_point
    add mul sub max min typename get_device_module set_float32_matmul_precision chain_matmul cartesian_prod""".split()
)


class Evidence:
    """Names (and dotted names) by the lines where they are used as only a tensor, or only an array, can be."""

    def __init__(self, text: str) -> None:
        strong: list[tuple[int, str]] = []
        arraylike: list[tuple[int, str]] = []
        ends = [m.start() for m in re.finditer("\n", text)]
        for match in _ATTRIBUTE.finditer(text):
            name, attribute, called = match.groups()
            if attribute in TORCH_ONLY and (called or attribute not in _CALLED_ONLY):
                rows = strong
            elif attribute in ARRAY_LIKE:
                rows = arraylike
            else:
                continue
            if not name.startswith(_NOT_TENSORS) and name not in _NEITHER and not name.endswith(("shape", "size", "accelerator")):
                rows.append((bisect_left(ends, match.start()) + 1, name))
        for match in _INDEXED.finditer(text):
            if "," in match.group():
                arraylike.append((bisect_left(ends, match.start()) + 1, match.group(1)))
        for match in _BACKWARD.finditer(text):
            strong.append((bisect_left(ends, match.start()) + 1, match.group(1)))
        for match in _ARGUMENT.finditer(text):
            called, name = match.groups()
            if called not in _NO_TENSOR and name not in ("self", "None", "True", "False"):
                strong.append((bisect_left(ends, match.start()) + 1, name))
        # Where no other kind of array is imported, what only arrays have only tensors have.
        self.alone = _NUMPY.search(text) is None
        if self.alone:
            strong += arraylike
            arraylike = []
        strong.sort()
        arraylike.sort()
        self._rows = ((1, arraylike), (2, strong))

    def between(self, first: int, last: int) -> dict[str, int]:
        """Names used like a tensor in these lines, by how much that says (1: numpy has it too, 2: only torch)."""
        found: dict[str, int] = {}
        for weight, rows in self._rows:
            for row in range(bisect_left(rows, (first, "")), len(rows)):
                line, name = rows[row]
                if line > last:
                    break
                found[name] = weight
        return found
