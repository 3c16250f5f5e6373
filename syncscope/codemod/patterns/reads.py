"""Reads of numbers, `t.item()`, `float(t)`: what is read, and how several are read as one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.pattern import around, seen
from syncscope.codemod.whereabouts import wants_number
from syncscope.codemod.writes import changed
from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.ops import Op

STAYS_TENSOR = "it is a tensor that stays on the device, no Python number: what needs a number will read it"
SHORT = 60  # letters of code that are said
FLOATS = "what float() reads must be floating point"


def tensor_read(function: Function, node: ast.AST | None) -> ast.expr | None:
    """The tensor t of `t.item()` or `float(t)`, or `int(t)` where t holds integers; of `float(t.item())`, too."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor
        case ast.Call(func=called, args=[given], keywords=[]):
            name, tensor = function.dotted(called), without_item(given)
            number = name == "float" or (name == "int" and function.fact(tensor).dtype is Dtype.INT)
            return tensor if number and not maybe_number(function, name, tensor) else None
    return None


def stays_beside(function: Function, read: ast.AST) -> str:
    """What is to be said where another read of the same pass stays, as code: `loss.item()` waits as long."""
    text = function.file.text(read) if isinstance(read, ast.Call) else ""
    what = (
        f"`{text}`, another read beside it,"
        if text and len(text) <= SHORT and "\n" not in text
        else "another read beside it"
    )
    return f"{what} stays, and waits as long"


def without_item(value: ast.expr) -> ast.expr:
    """The t of `t.item()`: what is made of such a number is made of the tensor."""
    match value:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor
    return value


def maybe_number(function: Function, name: str | None, value: ast.expr) -> bool:
    """Whether `int(n)` or `float(n)` may be of a Python number: `int` is called on those, too, and so is no evidence."""
    if function.fact(value).kind is Value.SCALAR:
        return True
    computed = isinstance(value, (ast.Call, ast.BinOp))
    return mixed(function, value) or (name == "int" and not computed and function.fact(value).confidence < 3)


def number_read(function: Function, node: ast.AST | None) -> ast.expr | None:
    """As `tensor_read`, and the t of `int(t)` where t may hold integers, for all that is known."""
    match node:
        case ast.Call(func=called, args=[given], keywords=[]) if function.dotted(called) == "int":
            tensor = without_item(given)
            unknown = function.fact(tensor).dtype is Dtype.UNKNOWN and not maybe_number(function, "int", tensor)
            return tensor if unknown else tensor_read(function, node)
    return tensor_read(function, node)


def number_of(function: Function, node: ast.AST) -> tuple[ast.expr | None, ast.AST]:
    """The tensor that is read, and the whole of the read: `t` and `float(t.cpu().item())` of `t.cpu()`."""
    tensor, read = tensor_read(function, node), node
    match node:
        case ast.Call(func=ast.Attribute(value=copied, attr="cpu"), args=[], keywords=[]):
            outer = around(function, node, "{it}.item()", "{it}.detach().item()", "float({it})")
            tensor, read = (copied, outer.node) if outer is not None else (None, node)
    outer = around(function, read, "float({it})") if isinstance(read, ast.expr) else None
    return tensor, outer.node if outer is not None else read


def converted(function: Function, read: ast.expr) -> ast.expr:
    """The whole of `float(t.item())` or `int(t.item())`, where that is what `t.item()` gives; else the read itself."""
    tensor = without_item(read)
    word = {Dtype.FLOAT: "float", Dtype.INT: "int"}.get(function.fact(tensor).dtype)
    whole = around(function, read, f"{word}({{it}})") if tensor is not read and word is not None else None
    return whole.node if whole is not None and isinstance(whole.node, ast.expr) else read


def as_listed(function: Function, read: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The tensor t of `t.item()`, `int(t)` or `float(t)`, and what the number that `tolist()` gives takes the place of: the
    whole of the read, or t alone where the number may be of another type.
    """
    match read:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor, read
        case ast.Call(func=called, args=[tensor], keywords=[]) if not isinstance(tensor, ast.Starred):
            name, dtype = function.dotted(called), function.fact(tensor).dtype
            if name in ("int", "float", "bool") and function.fact(tensor).is_tensor:
                same = (name, dtype) in (("int", Dtype.INT), ("float", Dtype.FLOAT), ("bool", Dtype.BOOL))
                return tensor, read if same else tensor
    return None


def in_size(function: Function, site: Site) -> ast.expr | None:
    """The one tensor in what a size or a bound is computed of, `n[i]` of `x[: n[i] - 1]`: a number of Python's does as well."""
    part: ast.expr | None = site.operand if site.op is Op.SIZE else None
    while isinstance(part, (ast.BinOp, ast.UnaryOp)):
        if isinstance(part, ast.UnaryOp):
            part = part.operand if isinstance(part.op, ast.USub) else None
            continue
        sides = [side for side in (part.left, part.right) if function.fact(side).is_tensor]
        other = part.right if part.left in sides else part.left
        plain = isinstance(part.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)) and len(sides) == 1
        known = function.constant(other) is not None or function.fact(other).kind is Value.SCALAR
        part = sides[0] if plain and known else None
    return part


def _in_sizes(function: Function) -> set[int]:
    """The tensors of a function that sizes are computed of, by their `id`."""
    return {id(part) for site in function.sites if (part := in_size(function, site)) is not None}


def read_of(function: Function, use: ast.Name) -> tuple[ast.expr, ast.expr] | None:
    """The read of a number that a use of a name is in: `t.item()`, `int(t)`; the name itself where it is taken as a size."""
    if id(use) in function.once("in sizes", function.scope, lambda: _in_sizes(function)):
        return use, use
    outer = function.parent(use)
    read = as_listed(function, function.parent(outer) or outer) if isinstance(outer, ast.Attribute) else None
    read = read or (as_listed(function, outer) if outer is not None else None)
    return read if read is not None and read[0] is use else None


def by_int(function: Function, read: ast.AST) -> bool:
    """Whether a number is read by `int(t)` and t is not known to hold integers."""
    return tensor_read(function, read) is None and number_read(function, read) is not None


def by_float(function: Function, read: ast.AST) -> bool:
    """Whether a number is read by `float(t)` and not known to be floating point: `tolist` may give it as an int."""
    tensor = tensor_read(function, read)
    called = isinstance(read, ast.Call) and function.dotted(read.func) == "float"
    return called and tensor is not None and function.fact(tensor).dtype is not Dtype.FLOAT


def read_until_true(function: Function, node: ast.AST) -> bool:
    """Whether this is the read of `known = known or bool(flag)`: after the flag is set it is read no more."""
    kept = around(function, node, "{known} or {it}") if isinstance(node, ast.expr) else None
    statement = function.parent(kept.node) if kept is not None else None
    if kept is None or not isinstance(statement, ast.Assign) or statement.value is not kept.node:
        return False
    return ast.unparse(statement.targets[0]) == ast.unparse(kept.parts["known"])


def is_apart(tensor: ast.expr) -> bool:
    """Whether a tensor is made of what was detached, by methods that take no other: `loss.detach().mean()`."""
    while isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute):
        if tensor.func.attr == "detach":
            return True
        if not all(isinstance(each, ast.Constant) for each in (*tensor.args, *(k.value for k in tensor.keywords))):
            return False
        tensor = tensor.func.value
    return False


def detached(function: Function, tensor: ast.expr) -> ast.expr:
    """The tensor without its own `.detach()` or `.data`, where the new code has one anyway."""
    found = seen(function, tensor, "{t}.data", "{t}.detach()")
    return detached(function, found["t"]) if found is not None else tensor


def read_again(function: Function, site: Site) -> list[Site]:
    """The other reads of what a name holds that a pass of a loop makes wherever it makes this one."""
    tensor, loop = number_of(function, site.node)[0], function.loop(site.node)
    if not isinstance(tensor, ast.Name) or loop is None or (made := function.reaching_definition(tensor)) is None:
        return []
    return [
        other
        for other, name in function.once("reads by name", function.scope, lambda: _by_name(function))[tensor.id]
        if other.node is not site.node
        and function.loop(other.node) is loop
        and not function.sometimes(other.node, loop, site.node)
        and function.reaching_definition(name) is made
    ]


def _by_name(function: Function) -> dict[str, list[tuple[Site, ast.Name]]]:
    """The reads of a function that are known well enough to be one, by the name that they read."""
    found: dict[str, list[tuple[Site, ast.Name]]] = defaultdict(list)
    for site in function.sites:
        tensor, _ = number_of(function, site.node)
        if isinstance(tensor, ast.Name) and site.confidence >= 2:
            found[tensor.id].append((site, tensor))
    return found


NO_GRADIENT = set("eq ne gt ge lt le isnan isinf isfinite argmax argmin bool long int count_nonzero nonzero".split())
KEEP_THAT = set("float double half to type sum mean any all clamp view reshape flatten cpu".split())


def without_gradient(function: Function, tensor: ast.expr) -> bool:
    """Whether a value is made of a comparison, or of whole numbers: no gradient goes through, and none is to be cut off."""
    node = function.value(tensor)
    match node:
        case ast.Compare():
            return True
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
            return without_gradient(function, inner)
        case ast.BinOp(left=left, right=right):
            return all(function.constant(n) is not None or without_gradient(function, n) for n in (left, right))
        case ast.Call(func=ast.Attribute(value=inner, attr=word), args=args):
            inner = args[0] if args and (function.dotted(node.func) or "").startswith("torch.") else inner
            return word in NO_GRADIENT or (word in KEEP_THAT and without_gradient(function, inner))
    return False


def known(site: Site, function: Function) -> bool:
    """Whether a read is known well enough to change code: surely, or because `.backward()` is called on what it is made of."""
    tensor = tensor_read(function, site.node)
    return site.confidence >= 2 or (tensor is not None and gone_back(function, tensor))


def gone_back(function: Function, tensor: ast.expr, depth: int = 2) -> bool:
    """Whether a value is made of a name on which `.backward()` is called, which only tensors have."""
    for name in (n for n in ast.walk(tensor) if isinstance(n, ast.Name)):
        around = (function.parent(use) for use in function.reads(name.id))
        if any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in around):
            return True
        match function.reaching_definition(name):
            case ast.Assign(value=ast.BinOp() as made) if depth and gone_back(function, made, depth - 1):
                return True
    return False


NUMBERS = set(
    "range int float bool str format print torch.zeros torch.ones torch.full torch.empty torch.arange torch.randint "
    "torch.tensor".split()
)
GIVEN_TO = {"append", "insert", "new_zeros", "new_ones", "new_full", "new_empty", "view", "reshape", "expand"}


def needs_number(function: Function, value: ast.expr) -> bool:
    """Whether a Python number is surely wanted of a value or of a name for it: a size, a slice, a condition, a list of them,
    an operand of what lives on the host.

    Where it becomes a tensor, the host waits for it there, or others do.
    """
    inner: ast.AST = value
    for outer in function.around(value):
        if wants_number(function, outer, inner):
            return True
        match outer:
            case ast.Slice() | ast.FormattedValue():
                return True
            case ast.Call(func=ast.Attribute(attr=name) as called) if called is not inner and name in GIVEN_TO:
                return True
            case ast.Call(func=called, args=args) if called is not inner:
                word = function.dotted(called)
                return word in NUMBERS or (word in ("max", "min") and len(args) > 1)  # which compare
            case ast.If(body=[ast.Return(value=ast.expr() as early)], orelse=[]):
                return not of_two_tensors(function, early, function.block(outer)[-1])
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                return outer.test is inner
            case ast.Assign():
                uses = function.seen_by(outer) or _read_below(function, outer)
                return inner is value and any(needs_number(function, use) for use in uses)
            case ast.stmt():
                return False
        inner = outer
    return False


def _read_below(function: Function, assign: ast.Assign) -> list[ast.Name]:
    """Where a name is read below one of several that bind it, as each arm of an `if` does."""
    named = assign.targets[0]
    return [n for n in function.reads(named.id) if n.lineno > assign.lineno] if isinstance(named, ast.Name) else []


def of_two_tensors(function: Function, early: ast.expr, last: ast.stmt) -> bool:
    """Whether which of two values is returned may be chosen on the device: one is a tensor, the other can be mixed with it."""
    late = last.value if isinstance(last, ast.Return) else None
    return late is not None and (function.fact(early).is_tensor or function.fact(late).is_tensor)


def meets_numbers(function: Function, value: ast.expr) -> bool:
    """Whether a number, or a name for it, is computed with other numbers alone, one of which is read itself: it stays one."""
    at, outer = value, function.parent(value)
    while isinstance(outer, ast.BinOp):
        other = outer.right if outer.left is at else outer.left
        if tensor_read(function, other) is not None or read_before(function, other):
            return True
        if function.constant(other) is None and function.fact(other).kind is not Value.SCALAR:
            return False
        at, outer = outer, function.parent(outer)
    match outer:
        case ast.Assign(targets=[ast.Name()], value=given) if given is at:
            return any(meets_numbers(function, use) for use in function.seen_by(outer))
    return False


def read_before(function: Function, name: ast.expr) -> bool:
    """Whether a name holds a number that was read of a tensor."""
    made = function.reaching_definition(name) if isinstance(name, ast.Name) else None
    return made is not None and tensor_read(function, made.value) is not None


def given_away(function: Function, value: ast.expr) -> bool:
    """Whether a number, or a name for it, is returned as it is or kept in a dict: who gets it may take no tensor."""
    match function.parent(value):
        case ast.Return():
            return True
        case ast.Assign(targets=[ast.Name()]) as named:
            return any(given_away(function, use) for use in function.seen_by(named))
    return kept_by_key(function, value)


def kept_by_key(function: Function, value: ast.expr) -> bool:
    """Whether what is computed of a number is kept in a dict, `group["gamma"] = 1 / number`: who reads it there is not seen."""
    at, outer = value, function.parent(value)
    while isinstance(outer, (ast.BinOp, ast.UnaryOp, ast.IfExp)):
        at, outer = outer, function.parent(outer)
    match outer:
        case ast.Dict() | ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str()))]):
            return not function.fact(at).is_tensor
    return False


TAKE_TENSORS = set(
    "add sub mul div true_divide divide multiply where maximum minimum clamp clamp_min eq ne lt gt le ge".split()
)


def handed_on(function: Function, value: ast.expr) -> bool:
    """Whether a number, or a name for it, goes to code that is not seen here, or is promised to be a number of Python's:
    it may be read there many times, or be an error.
    """
    inner: ast.AST = value
    for outer in function.around(value):
        match outer:
            case ast.Call(func=ast.Name(id="max" | "min")):
                pass
            case ast.Call(func=called) if called is not inner:
                op = function.op(outer)
                return op is None or op.name not in TAKE_TENSORS
            case ast.Return():
                promised = getattr(function.scope, "returns", None)
                return isinstance(promised, ast.Name) and promised.id in ("int", "float", "bool")
            case ast.Assign():
                return any(handed_on(function, use) for use in function.seen_by(outer))
            case ast.stmt():
                return False
        inner = outer
    return False


def undone_between(function: Function, tensor: ast.expr, start: ast.stmt, end: ast.expr | ast.stmt) -> bool:
    """Whether a tensor may change after a statement, so that it cannot be read at a later one."""
    return not function.pure(tensor) or changed(function, start, end, tensor)


def reads_of(function: Function, statement: ast.stmt, whole: bool = False) -> list[tuple[ast.Name, ast.expr]]:
    """Names and tensors of `a = t.item()` or `a, b = t.item(), u.item()`; empty for any other statement.

    With `whole`, also of `int(t)` where t may hold integers, for all that is known.
    """
    targets: Sequence[ast.expr]
    values: Sequence[ast.expr]
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if (
            len(targets) == len(values) > 1
        ):
            pass
        case ast.Assign(targets=[ast.Name() as target], value=value):
            targets, values = [target], [value]
        case _:
            return []
    found = []
    for name, one in zip(targets, values, strict=True):
        tensor = number_read(function, one) if whole else tensor_read(function, one)
        if not isinstance(name, ast.Name) or tensor is None or not function.pure(tensor):
            return []
        if function.fact(one).is_tensor or (by_float(function, one) and function.fact(tensor).dtype is Dtype.INT):
            return []
        found.append((name, tensor))
    return found
