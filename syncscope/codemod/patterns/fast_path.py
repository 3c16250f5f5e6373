"""Encoders of layers that never take torch's fast path, so that nobody looks into their padding mask."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.project.syntax import statements

_POSITIONAL = 6  # arguments of a layer before `batch_first`


def has_no_fast_path(encoder: ast.Call, function: Function) -> bool:
    """Whether an encoder is made of layers that are slow in any case: without `batch_first`, or with `norm_first`."""
    given = [*encoder.args[:1], *(k.value for k in encoder.keywords if k.arg == "encoder_layer")]
    layer = given[0] if given else None
    layers = _made(layer.id, encoder, function) if isinstance(layer, ast.Name) else [layer]
    return bool(layers) and all(_is_slow(each, function) for each in layers)


def _is_slow(layer: ast.expr | None, function: Function) -> bool:
    """Whether this makes a layer that is slow in any case."""
    if not isinstance(layer, ast.Call) or function.dotted(layer.func) != "torch.nn.TransformerEncoderLayer":
        return False
    said = {k.arg: getattr(k.value, "value", None) for k in layer.keywords}
    if None in said or len(layer.args) > _POSITIONAL:
        return False
    return said.get("batch_first", False) is False or said.get("norm_first") is True


def _made(name: str, encoder: ast.Call, function: Function) -> list[ast.expr]:
    """What is assigned to a name, each time, in the function in which an encoder is made."""
    outermost = function.file.outermost_around(encoder)
    around = (
        each
        for each in (statements(outermost) if outermost is not None else ())
        if isinstance(each, ast.FunctionDef) and each.lineno <= encoder.lineno <= (each.end_lineno or 0)
    )
    found = [s for each in around for s in statements(each) if isinstance(s, ast.Assign)]
    return [s.value for s in found if any(isinstance(t, ast.Name) and t.id == name for t in s.targets)]
