"""What an attribute is: what was set on an object, or a property, which looks like a value and runs code when it is read."""

from __future__ import annotations

import ast

from syncscope.model.fact import Fact, Value
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import ancestry, lookup, outside
from syncscope.project.syntax import walk
from syncscope.tensors.instances import Instance

# whoever has them, gives the same
OF_TENSORS = {"device", "dtype", "shape", "ndim", "is_cuda", "requires_grad", "training"}
RANDOM = {"bernoulli", "multinomial", "normal", "poisson", "dropout", "uniform", "rand", "randn", "randint", "randperm"}
PLAIN_CALLS = {"len", "float", "int", "bool", "abs", "str", "round"}
VALUES = frozenset((Value.TENSOR, Value.ARRAY, Value.SCALAR))
STILL = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.Compare, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.IfExp, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
DEEPEST = 5  # properties that read properties


def alike_again(owner: Fact, name: str, depth: int = 0) -> bool | None:
    """Whether an attribute gives the same when it is read again, and nobody notices; None where that is not known."""
    ref = owner.ref
    if name in OF_TENSORS:
        return True
    if isinstance(ref, Instance):
        return _of_class(owner, ref.cls, name, depth)
    return True if owner.kind in VALUES or ref is not None else None  # what a module, a class or a type of torch holds


def _of_class(owner: Fact, cls: Class, name: str, depth: int) -> bool | None:
    for each in ancestry(cls):
        method = each.methods.get(name)
        if method is not None and "property" in method.decorators():
            return depth < DEEPEST and _only_looks(method, owner, depth)
        if method is not None or name in each.fields or name in _set(each):
            return True
    bases = outside(cls)
    return True if any(b.startswith("torch.") and b != "torch.nn.Module" for b in bases) else None


def _set(cls: Class) -> set[str]:
    """The names that a class gives values in its body, or its methods on `self`: buffers, parameters and modules, too."""
    if cls.set_names is None:
        cls.set_names = set(cls.named)
        for node in walk(cls.node):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    cls.set_names.add(name)
                case ast.Call(func=ast.Attribute(attr=how), args=[ast.Constant(value=str(name)), *_]):
                    if how.startswith(("register_", "add_module")):
                        cls.set_names.add(name)
        for statement in cls.node.body:
            if isinstance(statement, ast.Assign):
                cls.set_names.update(t.id for t in statement.targets if isinstance(t, ast.Name))
    return cls.set_names


def _only_looks(method: ProjectFunction, owner: Fact, depth: int) -> bool:
    """Whether a property gives what its object holds, or computes with that, and does nothing else."""
    for statement in method.node.body:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Raise():
                continue
            case ast.Return(value=value) if value is None or _still(method, value, owner, depth):
                continue
            case ast.If(test=test, body=[ast.Raise() | ast.Return() as only], orelse=[]):
                given = only.value if isinstance(only, ast.Return) else None
                if _still(method, test, owner, depth) and (given is None or _still(method, given, owner, depth)):
                    continue
        return False
    return True


def _still(method: ProjectFunction, value: ast.expr, owner: Fact, depth: int) -> bool:
    for node in walk(value):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                if alike_again(owner, name, depth + 1) is False:
                    return False
            case ast.Call(func=func):
                if not _computes(method, func):
                    return False
            case _ if not isinstance(node, STILL):
                return False
    return True


def _computes(method: ProjectFunction, called: ast.expr) -> bool:
    """Whether a call only computes: a function of torch that draws nothing, or `len`."""
    words: list[str] = []
    while isinstance(called, ast.Attribute):
        words.append(called.attr)
        called = called.value
    if not isinstance(called, ast.Name):
        return False
    ref = lookup(method.module, called.id).ref
    name = words[0] if words else called.id
    if name in PLAIN_CALLS and not words:
        return True
    return isinstance(ref, str) and ref.startswith("torch") and name not in RANDOM and not name.endswith("_")
