"""Tensors that are made of a Python list where they are sent: nobody else has their memory, and most are small.

CUDA copies memory that is not pinned through a buffer of its own. Where `non_blocking=True` asks for it, the call returns once
that has it all, whatever is in the queue: up to 2 MB at once on an H100 (CUDA 13), 1 MB in many copies; for more it waits as
without. Without the word it waits for one byte, too. PyTorch's guide recommends it for every copy towards the device:
https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
"""

from __future__ import annotations

import ast
import re

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import COPYING, SHAPING
from syncscope.codemod.writes import written_after
from syncscope.model.fact import Dtype, Value
from syncscope.model.ops import Family
from syncscope.project.pinned import SENDS

FROM_HOST = {"torch.tensor", "torch.from_numpy", "torch.as_tensor"}
MAKERS = {"torch.tensor", "torch.Tensor", *(f"torch.{kind}Tensor" for kind in ("Float", "Long", "Int", "Bool"))}
CONVERTING = {"long", "float", "int", "bool", "double"}
WAIT_ON = (Family.READ, Family.SHAPE)
GIVES_LISTS = {"list", "sorted"}
FEW = re.compile(
    r"(?:^|_)(?:ind|idx|index|id|mask|len|length|label|class|action|reward|done|weight|assign|center|count|num|step|row|col|box"
    r"|scale|mean|std|prob|prior|sigma|quantile|perm|order)(?:s|es)?(?:$|_)|(?:^|_)(?:indices|classes)(?:$|_)|^[a-z]?(?:len|idx|ind)s?$"
)
"""What people call what has a number for each example, box or class: positions, lengths, labels, weights."""
TAKEN_OVER = (
    "the memory is not pinned: CUDA waits only for more than 2 MB (on an H100), "
    "another backend must copy it before it goes on"
)
OF_ANOTHER_LOADER = "it must come from a loader that pins its memory, as one of this project does"
NO_LINE_SAYS = "no other line of the project says non_blocking"
CHAIN = "`device=` is shorter, and waits"


def says_so(function: Function) -> bool:
    """Whether the project says `non_blocking=True` anywhere: else nobody merges it for memory that nothing pins."""
    file = function.file
    return file.once("sends", lambda: SENDS.search(file.code) is not None) or file.project.sends()


def of_few(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is most likely of less than 2 MB: made of a list, of one dimension or none, of whole numbers or a mask,
    or called as these are. What an object keeps is sent each time, and is worth more than that.
    """
    fact = function.fact(tensor)
    if made_of_list(function, tensor) or fact.dtype in (Dtype.INT, Dtype.BOOL) or called_few(function, tensor):
        return True
    root = shaped(function, tensor)
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.BinOp)):
        root = root.left if isinstance(root, ast.BinOp) else root.value
    kept = isinstance(root, ast.Name) and root.id == "self"
    return fact.ndim in (0, 1) and not kept


def called_few(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor, or the array that it is made of, is called as what has few elements."""
    values = shaped(function, tensor)
    if isinstance(values, ast.Call) and function.dotted(values.func) in FROM_HOST and len(values.args) == 1:
        values = values.args[0]
    while isinstance(values, ast.Subscript):
        values = values.value
    name = values.attr if isinstance(values, ast.Attribute) else values.id if isinstance(values, ast.Name) else ""
    return FEW.search(name.lower()) is not None


def shaped(function: Function, tensor: ast.expr) -> ast.expr:
    """What a tensor is under `.float()`, `.view(...)` and the like: the call that makes it, or a name."""
    while True:
        match tensor:
            case ast.Call(func=ast.Attribute(value=inner, attr=word)) if (
                word in SHAPING | COPYING | CONVERTING and function.dotted(tensor.func) is None
            ):
                tensor = inner
            case _:
                return tensor


def made_of_list(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is made of a Python list of numbers for this one use, and only shaped before it is used.

    `torch.tensor(lengths).unsqueeze(1)`, or a name that holds it and is not written afterwards.
    """
    match tensor:
        case ast.Name():
            made = function.reaching_definition(tensor)
            statement = function.statement(tensor)
            if made is None or statement is None or function.captured(tensor.id):
                return False
            again = isinstance(statement, ast.Assign) and any(function.same_name(t, tensor) for t in statement.targets)
            return (again or not written_after(function, tensor, statement)) and made_of_list(function, made.value)
        case ast.Call(func=ast.Attribute(value=inner, attr=word)) if word in SHAPING | CONVERTING:
            return made_of_list(function, inner)
        case ast.Call(args=[values]) if function.dotted(tensor.func) in MAKERS:
            return is_list(function, values)
    return False


def waits_around(function: Function, copy: ast.expr) -> bool:
    """Whether what a copy is made for in the same expression waits itself: `f(torch.tensor(ids, device=d)).cpu()`."""
    statement = function.statement(copy)
    around = {id(node) for node in function.around(copy)}
    if statement is None:
        return False
    sure = (site for site in function.sites_in(statement) if site.confidence >= 2 and site.op.family in WAIT_ON)
    return any(id(site.node) in around for site in sure)


def is_list(function: Function, values: ast.expr, depth: int = 0) -> bool:
    """Whether a value is surely a Python list (or tuple) of what the host has, or a number."""
    if _holds_tensors(function, values):
        return False
    match values:
        case ast.List() | ast.Tuple() | ast.ListComp():
            return True
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add(), right=right):
            return any(isinstance(each, (ast.List, ast.ListComp)) for each in (left, right))
        case ast.Call(func=ast.Name(id=word)) if word in GIVES_LISTS:
            return True
        case ast.Call(func=ast.Attribute(attr="tolist"), args=[]):
            return True
        case ast.Name(id=name) if depth < 4 and name not in function.parameters:
            here = function.statement(values)
            given = [_given(function, bind) for bind in function.binds(name) if function.statement(bind) is not here]
            return bool(given) and all(each is not None and is_list(function, each, depth + 1) for each in given)
    return function.fact(values).kind is Value.SEQUENCE


def _given(function: Function, bind: ast.Name) -> ast.expr | None:
    """What an assignment gives a name, also one of several: `a, b = [], []`."""
    match function.statement(bind):
        case ast.Assign(targets=[ast.Name() as target], value=value) if target is bind:
            return value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if bind in targets:
            return values[targets.index(bind)] if len(targets) == len(values) else None
        case ast.AnnAssign(target=ast.Name() as target, value=value) if target is bind:
            return value
        case ast.AugAssign(target=ast.Name() as target, op=ast.Add(), value=value) if target is bind:
            return value
    return None


def _holds_tensors(function: Function, node: ast.AST) -> bool:
    """Whether a tensor is among what a list is made of: not where the host only asks it, or goes through its rows."""
    if isinstance(node, ast.comprehension):
        return any(_holds_tensors(function, test) for test in node.ifs)
    if isinstance(node, ast.expr) and function.fact(node).is_tensor:
        return not _asks(function, node)
    return any(_holds_tensors(function, child) for child in ast.iter_child_nodes(node))


def _asks(function: Function, node: ast.expr) -> bool:
    """Whether a tensor is only asked for what the host knows of it, or read: `x.shape[0]`, `len(x)`, `x.tolist()`."""
    parent = function.parent(node)
    if (
        isinstance(parent, ast.Subscript)
        and isinstance(parent.slice, ast.Constant)
        and isinstance(parent.slice.value, str)
    ):
        return _asks(function, parent)  # no tensor has entries with names: it was only guessed to be one
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("shape", "size", "dim", "numel", "tolist", "item")
    return isinstance(parent, ast.Call) and function.dotted(parent.func) in ("len", "range", "zip", "enumerate")
