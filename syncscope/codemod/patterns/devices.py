"""Which kinds of devices a file can run on, as its own text says."""

from __future__ import annotations

import ast
import re

from syncscope.codemod.function import Function
from syncscope.project.syntax import name_of, walk

# What may be, or give, a device that has no float64.
OTHERS = re.compile(
    rb"mps|xla|xpu|npu|hpu|ocl|opencl|directml|privateuse|accelerat|lightning|fabric|ignite|\.backends\b"
)
SENT_TO_CUDA = re.compile(rb"""\.cuda\(|["']cuda(:\d+)?["']""")
ELSEWHERE = re.compile(rb"""is_available|device_count|["'](cpu|mps)["']""")
PLAIN = re.compile(r"cuda(:\d+)?|cpu")


def knows_float64(function: Function) -> bool:
    """Whether all tensors of a file live on a CPU or on CUDA: it names those devices itself, and takes no others."""
    file = function.file
    return file.once("float64", lambda: _no_others(file.code) and _named_here(file.tree))


def _no_others(code: bytes) -> bool:
    return b"cuda" in code and not OTHERS.search(code.lower())


def _named_here(tree: ast.Module) -> bool:
    taken, given = False, False
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and is_device(node.attr):
            if name_of(node.value) != "torch":
                return False  # of the arguments, of a configuration, of a tensor that came from elsewhere
        elif isinstance(node, ast.arg) and is_device(node.arg):
            taken = True
        elif isinstance(node, ast.Assign) and any(is_device(name_of(t)) for t in node.targets):
            if not _plain(node.value):
                return False
            given = True
        elif isinstance(node, ast.Call) and name_of(node.func) == "cuda":
            given = True
    return given and (not taken or _is_script(tree))


def is_device(name: str) -> bool:
    """Whether people call a device so."""
    return name.lower().endswith(("device", "device_type", "device_id", "device_name"))


def needs_cuda(function: Function) -> bool:
    """Whether a file runs where CUDA is, and nowhere else: it sends what it has there, and asks for nothing."""
    return function.file.once("needs cuda", lambda: _sends_to_cuda(function.file.code))


def _sends_to_cuda(code: bytes) -> bool:
    return SENT_TO_CUDA.search(code) is not None and not ELSEWHERE.search(code)


def _plain(value: ast.expr) -> bool:
    """`torch.device("cuda" if torch.cuda.is_available() else "cpu")`, and the like."""
    texts = [n.value for n in walk(value) if isinstance(n, ast.Constant)]
    calls = [name_of(n.func) for n in walk(value) if isinstance(n, ast.Call)]
    return bool(texts) and all(isinstance(t, str) and PLAIN.fullmatch(t) for t in texts) and {*calls} <= KNOWN


KNOWN = {"device", "is_available"}


def _is_script(tree: ast.Module) -> bool:
    """Whether a file is run and not imported: it asks for `__name__`."""
    tests = (s.test for s in tree.body if isinstance(s, ast.If))
    return any(isinstance(t, ast.Compare) and name_of(t.left) == "__name__" for t in tests)
