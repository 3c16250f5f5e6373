"""Uploads: what is surely sent from the host to the device, and waited for only because nothing says that it need not be."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscope.codemod.function import Function
from syncscope.codemod.text import Text
from syncscope.codemod.writes import overwritten, written_after
from syncscope.model.fact import Device, Fact, Site, Value
from syncscope.project.syntax import walk


def is_upload(site: Site, function: Function) -> bool:
    """Whether this is `x.to(device)`, `x.cuda()` or `y.copy_(x)`, surely of the host's, with nothing said of waiting."""
    if site.fact.kind is Value.MODULE:  # `cuda` of one takes no non_blocking, and it is moved once
        return False
    match site.node:
        case ast.Call(func=ast.Attribute(value=ast.Call(keywords=given))) if any(
            k.arg == "return_tensors" for k in given
        ):
            return False  # a dictionary of tensors, which may take no non_blocking
        case ast.Call(func=ast.Attribute(attr="to" | "cuda" | "copy_")) as call:
            said = any(k.arg in ("non_blocking", "copy", None) for k in call.keywords)
            return (
                not said and len(call.args) <= 1 and from_host(site, call, function) and not written_on(function, call)
            )
    return False


def written_on(function: Function, call: ast.Call) -> bool:
    """Whether what is moved is written afterwards, on the host: perhaps before it has arrived."""
    moved = call.args[0] if isinstance(call.func, ast.Attribute) and call.func.attr == "copy_" and call.args else None
    moved = moved or (call.func.value if isinstance(call.func, ast.Attribute) else None)
    statement, loop = function.statement(call), function.loop(call)
    if not isinstance(moved, ast.Name) or statement is None:
        return False
    if any(function.statement(n) is statement for n in function.binds(moved.id)):
        return False  # `x = x.to(device)`: what is written by this name is the copy
    return (loop is not None and overwritten(function, moved, call, loop)) or written_after(function, moved, statement)


def from_host(site: Site, call: ast.Call, function: Function) -> bool:
    """Whether a copy surely goes towards the device: the other way, the host would read what has not arrived."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "copy_":
        return site.fact_of(call.func.value).device is Device.DEVICE
    moved = call.func.value
    if call.func.attr == "cuda":
        return not (isinstance(moved, ast.Attribute) and stays_where_sent(function, moved, call))
    to_mps = any("mps" in ast.unparse(each) for each in (*call.args, *(k.value for k in call.keywords)))
    # on MPS the memory of the source is read later, when it may be another's
    if to_mps or may_be_given(function, moved):
        return False
    match moved:
        case ast.Call(func=ast.Attribute(value=given, attr="long" | "int" | "bool" | "float"), args=[]):
            return on_host(site.fact_of(given)) and not stays_where_sent(function, given, call)
    return on_host(site.fact_of(moved)) and not stays_where_sent(function, moved, call)


def may_be_given(function: Function, moved: ast.expr) -> bool:
    """Whether what is moved is made on the host only where the caller gives nothing: `if table is None: table = ...`."""
    for _ in range(8):
        match moved:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                moved = inner
            case ast.BoolOp(values=either):
                return any(isinstance(e, ast.Name) and e.id in function.parameters for e in either)
            case ast.IfExp(body=one, orelse=other):
                return any(isinstance(e, ast.Name) and e.id in function.parameters for e in (one, other))
            case ast.Name(id=name):
                made = function.reaching_definition(moved)
                if made is None:
                    here = function.statement(moved)
                    before = (b for b in function.binds(name) if b.lineno <= moved.lineno)
                    return name in function.parameters and any(function.statement(b) is not here for b in before)
                moved = made.value
            case _:
                return False
    return False


def on_host(fact: Fact) -> bool:
    """Whether a tensor is on the host, however it came about: not where it may also be what nothing is known of."""
    while fact.kind is not Value.BATCH:
        before = fact.source
        if before is None or before.kind is not Value.TENSOR or before.device is not Device.HOST:
            return fact.device is Device.HOST or (before is not None and before.kind is Value.BATCH)
        if not fact.provenance and fact.confidence < before.confidence:
            return False
        fact = before
    return True


def stays_where_sent(function: Function, moved: ast.expr, call: ast.Call) -> bool:
    """Whether what is moved outlives the call, and is where it was sent last: `self.w = self.w.to(x)`, a buffer."""
    while True:
        match moved:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return kept_on_self(function, name)
            case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
                moved = inner
            case ast.Name(id=name):
                around = function.around(call)
                loops = (g for outer in around for g in getattr(outer, "generators", []))
                source = next((g.iter for g in loops if isinstance(g.target, ast.Name) and g.target.id == name), None)
                if source is None or isinstance(source, ast.Name):
                    kept = (s for s in function.statements if isinstance(s, (ast.Global, ast.Nonlocal)))
                    return any(name in s.names for s in kept)
                moved = source
            case _:
                return False


def kept_on_self(function: Function, name: str) -> bool:
    """Whether a class sends an attribute somewhere and keeps it there, or has it sent along with its parameters."""
    return name in function.file.once("kept on self", lambda: set(_kept_on_self(function.file)))


def _kept_on_self(file: Text) -> Iterator[str]:
    for call in file.calls.get("register_buffer", ()):
        match call:
            case ast.Call(func=ast.Attribute(), args=[ast.Constant(value=str() as word), *_]):
                yield word
    for statement in file.statements:
        match statement:
            case ast.Assign(targets=[ast.Attribute(attr=word)], value=value):
                if any(isinstance(n, ast.Attribute) and n.attr == word for n in walk(value)):
                    yield word
