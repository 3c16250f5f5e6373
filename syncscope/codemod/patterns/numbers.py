"""Numbers as users write them down: `1.0`, `float("inf")`, `math.pi`."""

from __future__ import annotations

import ast
import re

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import number
from syncscope.codemod.pattern import alike, seen
from syncscope.codemod.patterns.made_on_host import TYPES
from syncscope.codemod.templates import Part
from syncscope.model.fact import Device, Dtype, Fact, Value
from syncscope.model.finding import Drawback
from syncscope.project import conventions
from syncscope.project.syntax import name_of

SPECIAL = {f"{module}.{word}" for module in ("math", "torch", "numpy") for word in ("inf", "nan", "pi", "e")}
LARGEST = 3.4e38  # about what single precision holds
ALONE = re.compile(r"\((.+),\)")
PROMOTED = "a number of another dtype is converted, or the result promoted, instead of raising an error"
WHOLE_DTYPES = {"torch.long", "torch.int64", "torch.int", "torch.int32"}


def named(node: ast.expr) -> bool:
    """Whether this is a name or an attribute of one, `x`, `self.x`: written twice, it is not computed twice."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def written_out(function: Function, value: ast.expr) -> bool:
    """Whether this is surely a Python number."""
    plain = isinstance(value, ast.Constant) and isinstance(value.value, (bool, int, float))
    return plain or function.constant(value) is not None or special(function, value)


def number_on_device(fact: Fact) -> bool:
    """Whether this is a tensor without dimensions that may be on the device."""
    return fact.kind is Value.TENSOR and fact.ndim == 0 and fact.device is not Device.HOST


def is_bool(value: ast.expr) -> bool:
    """Whether this is True or False."""
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def special(function: Function, value: ast.expr) -> bool:
    """Whether this is surely a Python float that no digits are written for: `float("inf")`, `math.pi`."""
    if (negative := seen(function, value, "-{x}")) is not None:
        return special(function, negative["x"])
    if seen(function, value, "float('inf')", "float('-inf')", "float('nan')") is not None:
        return True
    match value:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() | ast.Sub(), right=right):  # 2 * math.pi, which never fails
            other = [side for side in (left, right) if not special(function, side)]
            return len(other) < 2 and all(number(side) is not None for side in other)
        case ast.BinOp(left=left, op=ast.Div(), right=right) if number(right):  # torch.pi / 2
            return special(function, left)
    return function.dotted(value) in SPECIAL


def too_large(function: Function, value: ast.expr) -> bool:
    """Whether a number is larger than all of single precision: `torch.tensor` makes it inf, where filling is an error."""
    number = function.constant(value)
    return number is not None and LARGEST < abs(number) < float("inf")


def element(function: Function, value: ast.expr) -> tuple[ast.expr, str]:
    """The number that a tensor is filled with, and its size: of a list of equal numbers, and of a number itself."""
    match value:
        case ast.List(elts=[ast.Constant() | ast.UnaryOp() as first, *more]) if all(alike(first, m) for m in more):
            return first, f"({len(more) + 1},)"
        case ast.List(elts=[ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call() | ast.BinOp() as only]):
            return only, "(1,)"
        case ast.List(elts=[ast.List() as first, *more]) if all(alike(each, first) for each in more):  # [[0.5]]
            number, size = element(function, first)
            if size != "()" and (not more or function.constant(number) is not None):
                return number, f"({len(more) + 1}, {size.strip('(,)')})"
    return value, "()"


def filled_with(function: Function, made: ast.Call, typed: bool) -> tuple[ast.expr, str] | None:
    """The number that all elements have of `torch.tensor([0.5])` or `torch.FloatTensor([0.5])`, and how many these are.

    `typed`: it names a dtype. What a dtype cannot hold is reported in other words.
    """
    if len(made.args) != 1:
        return None
    value, size = element(function, made.args[0])
    number = function.constant(value)
    dtype = TYPES.get(function.dotted(made.func) or "")
    if dtype is None:
        known = (
            is_bool(value) or (number is not None and abs(number) <= 127) or (not typed and special(function, value))
        )
        known = known or (own_int(function, value) and (not typed or as_long(function, made)))
        return (value, size) if known else None
    if size == "()":  # it is given sizes
        return None
    if dtype in ("torch.float", "torch.double"):
        known = special(function, value) or (number is not None and abs(number) <= 127)
    else:
        known = dtype in ("torch.long", "torch.int") and isinstance(number, int) and abs(number) <= 127
        known = known or (dtype == "torch.long" and own_int(function, value))
    return (value, size) if known else None


def of_equals(function: Function, value: ast.expr) -> tuple[ast.expr, str] | None:
    """The number that a list repeats, `[c] * n`, and the size of what it fills."""
    repeated = seen(function, value, "[{c}] * {n}", "{n} * [{c}]")
    if repeated is None or not function.pure(repeated["n"]):
        return None
    number, count = repeated["c"], repeated["n"]
    if function.fact(number).is_tensor or function.fact(count).is_tensor or isinstance(number, ast.Starred):
        return None
    if any(isinstance(n, (ast.List, ast.Tuple, ast.ListComp)) for n in ast.walk(function.value(number))):  # rows
        return None
    return number, f"({function.file.text(count)},)"


def of_a_range(function: Function, value: ast.expr) -> ast.Call | None:
    """The `range(n)` that a list holds, `list(range(n))`, `[i for i in range(n)]`, or that is itself given."""
    counted = value
    if isinstance(counted, ast.Call) and function.dotted(counted.func) == "list" and len(counted.args) == 1:
        counted = counted.args[0]
    match counted:
        case ast.ListComp(
            elt=ast.Name(id=each), generators=[ast.comprehension(target=ast.Name(id=name), iter=inner, ifs=[])]
        ) if each == name:
            counted = inner
    if not isinstance(counted, ast.Call) or function.dotted(counted.func) != "range" or counted.keywords:
        return None
    plain = not any(isinstance(each, ast.Starred) or function.fact(each).is_tensor for each in counted.args)
    return counted if plain and counted.args else None


def filler(number: ast.expr) -> str:
    """The function that makes a tensor of one number: zeros, ones, or full."""
    value = number.value if isinstance(number, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "full"
    return "zeros" if value == 0 else "ones" if value == 1 else "full"


def new_number(draft: Draft, of: ast.expr, number: ast.expr) -> Part:
    """A number as a tensor with the dtype of another one and on its device: `x.new_full((), 0.5)`, `x.new_ones(())`."""
    value = number.value if isinstance(number, ast.Constant) else None
    # its dtype is that of the other
    word = ("ones" if value else "zeros") if isinstance(value, bool) else filler(number)
    draft.drawbacks.add(Drawback.NO_NUMBER)
    return draft.part(f"{{x}}.new_{word}(()" + (", {number})" if word == "full" else ")"), x=of, number=number)


def filling(draft: Draft, call: ast.Call, number: ast.expr, size: str, **more: Part) -> Part:
    """`torch.tensor(number)` or `x.new_tensor(number)` as a call that fills what it makes.

    `torch.zeros` has torch's default dtype where none is given, or None: so `torch.tensor(0)`, which is whole, says that it is.
    """
    made, word = call.func, filler(number)
    new = made.value if isinstance(made, ast.Attribute) and made.attr == "new_tensor" else None
    value = number.value if isinstance(number, ast.Constant) else None
    if new is None and isinstance(value, int) and "dtype" not in more and not says_dtype(draft.function, call):
        told = any(k.arg == "dtype" for k in call.keywords)
        if not told and value in (0, 1):  # True and False, too
            word = "ones" if value else "zeros"
            more["dtype"] = draft.part("torch.bool" if isinstance(value, bool) else "torch.long")
        else:
            word = "full"
    if word != "full" and (count := ALONE.fullmatch(size)) is not None:
        size = count[1]
    name = draft.part(f"torch.{word}") if new is None else draft.part(f"{{x}}.new_{word}", x=new)
    if word == "full":
        return draft.call(call, {made: name, call.args[0]: number}, size, **more)
    return draft.call(call, {made: name, call.args[0]: size}, **more)


def says_dtype(function: Function, call: ast.Call) -> bool:
    """Whether a call names a dtype that is surely not None: `torch.long`, that of a tensor, a constant of the project."""
    dtype = next((k.value for k in call.keywords if k.arg == "dtype"), None)
    if isinstance(dtype, ast.Name) and dtype.id not in function.parameters and not function.binds(dtype.id):
        known = function.fact(dtype)
        return known.kind is Value.OTHER and known.dtype is not Dtype.UNKNOWN and known.confidence == 3
    if not isinstance(dtype, ast.Attribute):
        return False
    of_tensor = dtype.attr == "dtype" and function.fact(dtype.value).is_tensor
    return of_tensor or (function.dotted(dtype) or "").startswith("torch.")


def as_long(function: Function, made: ast.Call) -> bool:
    """Whether a call names the dtype in which Python's whole numbers are held."""
    named = next((k.value for k in made.keywords if k.arg == "dtype"), None)
    return named is not None and function.dotted(named) in ("torch.long", "torch.int64")


def is_whole(function: Function, number: ast.expr) -> bool:
    """Whether this is surely a whole number of Python's."""
    fact = function.fact(number)
    known = fact.kind is Value.SCALAR and fact.dtype is Dtype.INT and fact.confidence >= 2
    return known or isinstance(function.constant(number), int)


def _as_another(function: Function, dtype: ast.expr) -> bool:
    """Whether this is the dtype of a tensor, `x.dtype`: whole numbers are rounded to it alike, wherever that is."""
    return isinstance(dtype, ast.Attribute) and dtype.attr == "dtype" and function.fact(dtype.value).is_tensor


def counts(function: Function, made: ast.Call) -> bool:
    """Whether this is `torch.arange` that gives whole numbers, wherever it ends: that is exact on every device."""
    given = [k.value for k in made.keywords if k.arg == "dtype"]
    dtypes = [function.dotted(each) for each in given if not _as_another(function, each)]
    if function.dotted(made.func) != "torch.arange" or len(made.keywords) > len(given) or set(dtypes) - WHOLE_DTYPES:
        return False
    begin_and_step = (*made.args[:-1][:1], *made.args[2:])
    return all(is_whole(function, a) for a in begin_and_step)


def own_int(function: Function, number: ast.expr) -> bool:
    """Whether this is a size or a count, which is an int of Python's: one of numpy's gives a tensor its own dtype."""
    made = function.value(number)
    match made:
        case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp(elt=each) | ast.ListComp(elt=each)]):
            return seen(function, each, "len({x})") is not None  # of several, all in all
    sized = seen(function, made, "len({x})", "{x}.size({n})", "{x}.numel()", "{x}.dim()", "{x}.shape[{n}]")
    return sized is not None and is_whole(function, number)


def python_number(function: Function, node: ast.expr) -> bool:
    """Whether this is a number of Python's own: one of numpy's, or a tensor, gives what it meets its own dtype."""
    fact = function.fact(node)
    known = fact.kind is Value.SCALAR and fact.confidence == 3 and fact.dtype in (Dtype.INT, Dtype.FLOAT)
    made = function.value(node)
    if (
        seen(function, made, "{x}.item()", "len({x})", "int({x})", "float({x})", "{x}.size({n})", "{x}.numel()")
        is not None
    ):
        return True
    name = name_of(node)  # `num_tokens` may be a tensor that was counted just before
    called = name == "batch_size" or (isinstance(node, ast.Attribute) and conventions.counts(name))
    return known or function.constant(node) is not None or called
