"""What is computed on the host of nothing but tensors made there and of numbers: all of it can be made on the device."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import number
from syncscope.codemod.patterns.devices import is_device
from syncscope.codemod.proofs import ELEMENTWISE, NOT_ELEMENTWISE, cast, one_value
from syncscope.codemod.whereabouts import attributes
from syncscope.project.syntax import each_of, name_of, walk
from syncscope.tensors.facts import Tag
from syncscope.tensors.torch.signatures import FACTORIES

SAME = {f"torch.{name}" for name in "zeros ones full eye empty".split()}
WHOLE = {f"torch.{name}" for name in "zeros ones eye".split()}  # a whole number more or less is exact, too
SMALL = range(-127, 128)
CLOSE = {f"torch.{name}" for name in "arange linspace logspace hann_window hamming_window".split()}
DRAWN = {f"torch.{name}" for name in "rand randn randint randperm normal".split()}
TYPES = {
    f"torch.{name}Tensor": f"torch.{dtype}"
    for name, dtype in zip(
        "Float Double Half BFloat16 Byte Char Short Int Long Bool".split(),
        "float double half bfloat16 uint8 int8 int16 int long bool".split(),
        strict=True,
    )
}
"""`torch.FloatTensor(2, 3)`, as it was written once: what it holds nobody knows before it is filled."""
FILLING = {"fill_", "zero_"}
SHAPING = set("unsqueeze squeeze view reshape flatten t transpose permute expand clone".split())
COPYING = {"repeat", "contiguous", "triu", "tril"}  # what they give is laid out anew
DESCRIBED = {"shape", "size", "dim", "dtype", "numel"}
JOINING = {"cat", "stack", "hstack", "vstack"}
SAID: set[str | None] = {"device", "out", "requires_grad", "pin_memory", "generator", None}


TENSORS = {"torch.nn.Parameter", "torch.nn.Buffer", *(f"torch.{name}" for name in FACTORIES)}


class Made(NamedTuple):
    """The calls that make tensors, in an expression and behind its names; and what is done with them.

    `computed`: more than shaped and joined. `shared`: it is a part of another tensor, or repeats its elements: a copy of it is
    laid out otherwise.
    """

    calls: list[ast.Call]
    computed: bool
    shared: bool


Named = dict[ast.Assign, tuple[Made, list[ast.Name]]]  # what names hold that were met, and where they were read


def made_on_host(function: Function, tensor: ast.expr) -> Made | None:
    """What a tensor is made of, where all of it is made for this one use, of nothing that only the host has."""
    named: Named = {}
    found = _parts(function, tensor, named)
    if found is None or not found.calls:
        return None
    kept = all(_serves(function, assign, read, tensor) for assign, (_, read) in named.items())
    return found if kept else None


class Form(NamedTuple):
    """How an expression makes a tensor of others."""

    parts: list[ast.expr]
    computed: bool = True  # by what may round otherwise on the device
    fresh: bool = True  # in memory of its own
    shared: bool = False  # elements share theirs
    exact: bool = False  # of whole numbers nothing is rounded


def _parts(function: Function, node: ast.expr, named: Named) -> Made | None:
    if isinstance(node, ast.Name):
        return _held(function, node, named)
    form = _form(node) if not isinstance(node, ast.Call) else _of_call(function, node)
    if not isinstance(form, Form):
        return form
    inner = [_parts(function, part, named) for part in form.parts if not _is_number(function, part)]
    known = [each for each in inner if each is not None]
    if not inner or len(known) < len(inner):
        return None
    calls = [call for each in known for call in each.calls]
    computed = form.computed and not (form.exact and all(function.dotted(call.func) in WHOLE for call in calls))
    return Made(
        calls,
        computed or any(each.computed for each in known),
        form.shared or (not form.fresh and any(each.shared for each in known)),
    )


def _form(node: ast.expr) -> Form | None:
    """How an expression that calls nothing makes a tensor; None where it is none that is known."""
    match node:
        case ast.BinOp(left=left, right=right, op=op) if not isinstance(op, ast.MatMult):
            small = any(number(side) in SMALL for side in (left, right))
            return Form([left, right], exact=small and isinstance(op, (ast.Add, ast.Sub, ast.Mult)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, NOT_ELEMENTWISE):
            return Form([left, right])
        case ast.UnaryOp(operand=operand, op=ast.USub() | ast.Invert()):
            return Form([operand])
        case ast.Subscript(value=value, slice=index) if all(
            isinstance(p, (ast.Slice, ast.Constant)) for p in each_of(index)
        ):
            part_of_it = not all(takes_all(part) for part in each_of(index))
            return Form([value], computed=False, fresh=False, shared=part_of_it)
    return None


def _of_call(function: Function, node: ast.Call) -> Form | Made | None:
    """How a call makes a tensor of others, or of nothing: None where it may be of the device, or nobody knows."""
    name = function.dotted(node.func) or ""
    if name in SAME | CLOSE | DRAWN:
        given = [*node.args, *(k.value for k in node.keywords)]
        said = SAID.intersection(k.arg for k in node.keywords) or any(function.fact(g).is_tensor for g in given)
        return None if said else Made([node], computed=False, shared=False)
    if name.startswith("einops.") and node.args:
        plain = not any(function.fact(k.value).is_tensor for k in node.keywords)
        if name_of(node.func) not in ("rearrange", "repeat") or not plain:
            return None
        return Form(node.args[:1], computed=False, fresh=False, shared=name_of(node.func) == "repeat")
    op = function.op(node)
    if op is None:
        return None
    if op.name in JOINING and isinstance(op.base, (ast.List, ast.Tuple)):
        return Form(list(op.base.elts), computed=False)
    if op.name in SHAPING | COPYING or cast(function, op):
        return Form([op.base], computed=False, fresh=op.name in COPYING, shared=op.name == "expand")
    if op.name in FILLING and not op.keywords:
        if not all(one_value(function, function.fact(a), a) for a in op.args):
            return None
        if isinstance(op.base, ast.Call) and _only_sized(function, op.base):
            return Made([op.base], computed=False, shared=False)
        return Form([op.base], computed=False, fresh=False)
    if op.name in ELEMENTWISE and not op.keywords:
        computed = op.name not in ("long", "float", "double", "bool")
        return Form([op.base, *op.args], computed=computed, fresh=computed)
    return None


def _held(function: Function, name: ast.Name, named: Named) -> Made | None:
    """What a name holds: as it was made, and what was written to slices of it, `x[:n] = part`."""
    made = function.reaching_definition(name)
    if made is None:
        return None
    if made in named:  # its calls are counted
        known, read = named[made]
        read.append(name)
        return Made([], known.computed, known.shared)
    put = (_written(function, use) for use in _uses(function, made, name))
    given = [part for part in put if part is not None and not _is_number(function, part)]
    every = [_parts(function, part, named) for part in (made.value, *given)]
    found = [each for each in every if each is not None]
    if len(found) < len(every):
        return None
    whole = Made([c for each in found for c in each.calls], any(each.computed for each in found), found[0].shared)
    named[made] = whole, [name]
    return whole


def _serves(function: Function, made: ast.Assign, read: list[ast.Name], tensor: ast.expr) -> bool:
    """Whether a name serves for nothing but a tensor that is sent: it is read on the way to it, or written before."""
    uses, end = _uses(function, made, read[0]), function.file.span(tensor).end
    if not all(one in uses for one in read) or function.loop(tensor) is not function.loop(made):
        return False
    for use in uses:
        held = function.parent(use)
        described = isinstance(held, ast.Attribute) and held.attr in DESCRIBED
        put = _written(function, use) is not None and function.file.span(use).start < end
        if not (use in read or described or put):
            return False
    return True


def _written(function: Function, use: ast.Name) -> ast.expr | None:
    """What `x[:n] = part` writes; a number at a place is sent there, and so no part."""
    match function.statement(use):
        case ast.Assign(targets=[ast.Subscript(value=target, slice=index)], value=value) if target is use:
            slices = [isinstance(part, ast.Slice) for part in each_of(index)]
            pairs = zip(slices, each_of(index), strict=True)
            plain = all(sliced or one_value(function, function.fact(part), part) for sliced, part in pairs)
            return value if plain and any(slices) else None
    return None


def _uses(function: Function, made: ast.Assign, last: ast.Name) -> list[ast.Name]:
    """The uses that may see what an assignment gives a name: all of them where its last use binds the name again."""
    seen, block, moved = function.seen_by(made), function.block(made), function.statement(last)
    again = isinstance(moved, ast.Assign) and any(function.same_name(target, last) for target in moved.targets)
    if seen or not again or moved not in block or function.captured(last.id):
        return seen
    span = range(function.file.span(made).end, function.file.span(moved).end)
    return [use for use in function.reads(last.id) if function.file.span(use).start in span]


def _is_number(function: Function, node: ast.expr) -> bool:
    """Whether this is a Python number: surely, or because tensors are made in that size."""
    if one_value(function, function.fact(node), node):
        return True
    made = (c for c in function.every(ast.Call) if function.dotted(c.func) in SAME | CLOSE | DRAWN)
    return any(function.same_name(a, node) for c in made for a in (*c.args, *(k.value for k in c.keywords)))


def _only_sized(function: Function, node: ast.Call) -> bool:
    """Whether this is `torch.FloatTensor(2, 3)` or `torch.FloatTensor(x.shape)`, which is given sizes, not what it holds."""
    if node.keywords or function.dotted(node.func) not in TYPES:
        return False
    match node.args:
        case [ast.Attribute(value=of, attr="shape")] | [ast.Call(func=ast.Attribute(value=of, attr="size"), args=[])]:
            fact = function.fact(of)
            return fact.is_tensor and fact.confidence >= 2
    return bool(node.args) and all(one_value(function, function.fact(a), a) for a in node.args)


def takes_all(part: ast.expr) -> bool:
    """Whether a part of an index takes all of a dimension, or adds one."""
    if isinstance(part, ast.Slice):
        return part.lower is part.upper is part.step is None
    return isinstance(part, ast.Constant) and part.value is None


def target(function: Function, move: ast.AST) -> ast.expr | str | None:
    """The device that `.to(device)` or `.cuda()` names."""
    where = _named(move) or _held_device(function, move)
    return where if not isinstance(where, ast.expr) or may_be_device(function, where) else None


def _held_device(function: Function, move: ast.AST) -> ast.Name | None:
    """A name that surely holds a device, whatever it is called: `dev = x.device`, `d = torch.device("cuda")`."""
    match move:
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Name() as where], keywords=[]):
            held = function.value(where)
            is_one = function.fact(where).ref is Tag.DEVICE or (
                isinstance(held, ast.Attribute) and held.attr == "device"
            )
            return where if is_one else None
    return None


def may_be_device(function: Function, where: ast.expr) -> bool:
    """Whether this may be a device: no tensor, and no attribute that the class around makes a parameter or a buffer."""
    if function.fact(where).is_tensor:
        return False
    if not isinstance(where, ast.Attribute) or not isinstance(where.value, ast.Name) or where.value.id != "self":
        return True
    made = [function.dotted(v.func) or "" for v in attributes(function, where.attr) if isinstance(v, ast.Call)]
    return not any(name in TENSORS for name in made) and not buffered(function, where.attr)


def buffered(function: Function, name: str) -> bool:
    """Whether the class around registers a buffer or a parameter of this name."""
    around = function.file.class_around(function.scope)
    calls = (n for n in walk(around) if isinstance(n, ast.Call)) if around is not None else ()
    words = ("register_buffer", "register_parameter")
    return any(
        name_of(call.func) in words and call.args and getattr(call.args[0], "value", None) == name for call in calls
    )


def _named(move: ast.AST) -> ast.expr | str | None:
    match move:
        case ast.Call(func=ast.Attribute(attr="cuda"), args=[], keywords=[]):
            return '"cuda"'
        case ast.Call(func=ast.Attribute(attr="to"), args=[], keywords=[ast.keyword(arg="device", value=where)]):
            return where if isinstance(where, (ast.Name, ast.Attribute, ast.Constant)) else None
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value=str()) as where], keywords=[]):
            return where
        case ast.Call(
            func=ast.Attribute(attr="to"), args=[(ast.Attribute(attr=word) | ast.Name(id=word)) as where], keywords=[]
        ):
            return where if is_device(word) else None
    return None
