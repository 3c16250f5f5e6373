"""`self.log("loss", loss)` of a Lightning module, which takes tensors and reads them where it writes them down."""

from __future__ import annotations

import ast

_OF_LIGHTNING = frozenset("on_step on_epoch prog_bar logger sync_dist rank_zero_only add_dataloader_idx".split())


def tells_lightning(call: ast.AST | None) -> bool:
    """Whether this may be Lightning's `self.log("name", value)` or `self.log_dict({...})`."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="self"), attr="log"),
            args=[ast.Constant(value=str()) | ast.JoinedStr(), *_],
        ):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="log_dict"), args=[ast.Dict(), *_]):
            return True
    return False


def surely_tells_lightning(call: ast.AST | None) -> bool:
    """Whether this is Lightning's, as what is given beside the value says: `prog_bar=True`."""
    given = [each.arg or "" for each in call.keywords] if isinstance(call, ast.Call) else []
    return tells_lightning(call) and not _OF_LIGHTNING.isdisjoint(given)
