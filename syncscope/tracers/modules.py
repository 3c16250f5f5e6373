"""Which nn.Module a read happens in: `model.backbone.layer3`, from the frames of the methods that are running."""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any

from syncscope.tracers.hooks import methods

DEEP = 60  # frames that are looked through
_paths: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def path_from(frame: FrameType | None) -> str:
    """The path of the innermost module whose method is running; "" where there is none."""
    torch = sys.modules.get("torch")
    kind = getattr(getattr(torch, "nn", None), "Module", None)
    if kind is None or frame is None:
        return ""
    found = methods.running(frame, kind, DEEP)
    if found is None:
        return ""
    frame, module = found
    path = _paths.get(module)
    if path is None:
        path = _paths[module] = _find(module, frame, kind)
    return path


def _find(module: Any, frame: FrameType, kind: type) -> str:
    """The names of the attributes from the outermost running module, by the caller's name for that."""
    root, caller = module, frame.f_back
    at = caller
    while at is not None and (outer := methods.running(at, kind, DEEP)) is not None:
        found, root = outer
        caller = at = found.f_back
    name = type(root).__name__
    while caller is not None:
        known = methods.name_in(caller, root) or next((n for n, v in caller.f_globals.items() if v is root), None)
        if known and not known.startswith("_"):
            name = known
            break
        caller = caller.f_back
    inner = next((n for n, m in root.named_modules() if m is module), type(module).__name__)
    return f"{name}.{inner}" if inner else name
