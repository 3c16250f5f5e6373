"""What a call may do to what it is given, by the name of what is called: give it back, write it, keep it, or only compute."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function

HOLD = frozenset("list tuple dict set zip enumerate reversed iter next min max sorted".split())
"""Functions of Python that give what they are given, and do not change it."""

INERT = frozenset(
    """len print float int bool str abs round isinstance range type id hasattr repr sum any all format time.time
    time.perf_counter numpy.arange numpy.empty numpy.eye numpy.full numpy.ones numpy.zeros numpy.random.permutation
    numpy.random.rand numpy.random.randint numpy.random.randn numpy.random.uniform""".split()
)
"""Functions that give nothing of what they are given, and change nothing."""

WRITE = frozenset("random.shuffle numpy.random.shuffle numpy.copyto numpy.put numpy.fill_diagonal".split())
"""Functions that change what they are given, and keep nothing of it: once they are done nobody else has it."""

PURE = tuple(
    f"torch.{name}"
    for name in """nn.functional. nn.utils.rnn. nn.Parameter linalg. fft. special. sparse. nested. Tensor. distributions.
    autograd. cuda. amp. random.""".split()
)
"""What of torch only computes, as its own functions do: unlike torch.distributed, torch.optim, torch.nn.init."""

INPLACE_AT = (
    dict.fromkeys("relu relu6 selu silu mish hardsigmoid hardswish".split(), 1)
    | dict.fromkeys("elu celu leaky_relu".split(), 2)
    | dict.fromkeys("threshold hardtanh dropout alpha_dropout feature_alpha_dropout".split(), 3)
    | {"dropout1d": 3, "dropout2d": 3, "dropout3d": 3, "rrelu": 4}
)
"""The place of `inplace` among the arguments of torch.nn.functional."""


def foreign(function: Function, node: ast.AST | None) -> bool:
    """Whether a call runs code that may do anything to its arguments."""
    if not isinstance(node, ast.Call):
        return False
    dotted = function.dotted(node.func)
    if dotted is None:
        if isinstance(node.func, ast.Attribute) and function.fact(node.func.value).is_tensor:
            return node.func.attr.endswith("_")
        return not isinstance(node.func, ast.Attribute) or isinstance(node.func.value, ast.Name)
    return not (computes(dotted) or dotted in INERT or dotted in HOLD) or dotted.endswith("_")


def computes(dotted: str) -> bool:
    """Whether a function of torch only computes what it gives, and keeps no running statistics."""
    if dotted.endswith(("batch_norm", "instance_norm")):
        return False
    return dotted.startswith(PURE) or (dotted.startswith("torch.") and dotted.count(".") == 1)


def in_place(function: Function, call: ast.Call) -> bool:
    """Whether a function may be asked to write where it reads: `F.relu(x, inplace=flag)`, `F.relu(x, True)`."""
    name = (function.dotted(call.func) or "").rpartition("torch.nn.functional.")[2]
    asked = [k.value for k in call.keywords if k.arg == "inplace"] + call.args[INPLACE_AT.get(name, len(call.args)) :]
    return any(not (isinstance(v, ast.Constant) and v.value is False) for v in asked)
