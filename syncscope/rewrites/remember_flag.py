"""A flag in a buffer that is read in every step, `if not self.ready:`: read until it is set, and remembered in Python."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import CONDITIONAL
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.reads import read_until_true
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import walk

ZERO, ONE = (0, False), (1, True)
READS = ("{flag}.item()", "bool({flag})", "int({flag})")
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Quantizer(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ready", torch.tensor(False))
                self.register_buffer("mean", torch.zeros(4))

            def forward(self, x: torch.Tensor):
                if not self.ready:  # !
                    self.mean.copy_(x.mean(dim=0))
                    self.ready.fill_(True)
                return x - self.mean
        """,
        """
        import torch
        from torch import nn

        class Quantizer(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ready", torch.tensor(False))
                self.ready_seen = False
                self.register_buffer("mean", torch.zeros(4))

            def forward(self, x: torch.Tensor):
                self.ready_seen = self.ready_seen or bool(self.ready)
                if not self.ready_seen:
                    self.mean.copy_(x.mean(dim=0))
                    self.ready.fill_(True)
                return x - self.mean
        """,
        Safety.UNSAFE,
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
                self.scale = nn.Parameter(torch.ones(4))

            def forward(self, x: torch.Tensor):
                if self.initialized.item() == 0:  # !
                    self.scale.data.copy_(1 / x.std(dim=0))
                    self.initialized.fill_(1)
                return x * self.scale
        """,
        """
        import torch
        from torch import nn

        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
                self.initialized_seen = False
                self.scale = nn.Parameter(torch.ones(4))

            def forward(self, x: torch.Tensor):
                self.initialized_seen = self.initialized_seen or bool(self.initialized)
                if self.initialized_seen == 0:
                    self.scale.data.copy_(1 / x.std(dim=0))
                    self.initialized.fill_(1)
                return x * self.scale
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Queue(nn.Module):
            def __init__(self, shape=None):
                super().__init__()
                if shape is None:
                    self.register_buffer("ready", torch.tensor(False))
                else:
                    self.register_buffer("ready", torch.tensor(True))

            def forward(self, x: torch.Tensor):
                if not self.ready:  # !
                    self.ready.fill_(True)
                return x
        """,
        rule="tensor-in-condition",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    read = site.operand if isinstance(site.operand, ast.expr) else site.node
    if isinstance(site.node, ast.Call):
        read = site.node
    found = seen(function, read, *READS)
    match found["flag"] if found is not None else read:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            pass
        case _:
            return None
    statement = function.statement(read) if isinstance(read, ast.expr) else None
    owner = function.file.class_around(function.scope)
    registered = registration(owner, name) if owner is not None else None
    if statement is None or registered is None or owner is None or not isinstance(read, ast.expr):
        return None
    if read_until_true(function, read) or not asked(function, read) or not evaluated(function, statement, read):
        return None
    if not all(only_set(owner, n) for n in walk(owner) if is_flag(n, name)):
        return None
    known = f"{name}_seen"
    draft = Draft(function)
    if not any(is_flag(n, known) for n in walk(owner)):
        draft.insert_after(registered, f"self.{known} = False")
    draft.insert_before(statement, f"self.{known} = self.{known} or bool(self.{name})")
    draft.replace(read, f"self.{known}")
    changes = f"once {name} was seen set it is not read again, whoever sets it back"
    return draft.fix("read the flag until it is set", Safety.UNSAFE, changes)


def is_flag(node: ast.AST, name: str) -> bool:
    """Whether this is `self.name`."""
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name)


def registration(owner: ast.ClassDef, name: str) -> ast.stmt | None:
    """The only statement `self.register_buffer("name", zero)` that makes the flag, which is not set then: in another branch,
    or set, what remembers it would not be there.
    """
    made: list[tuple[ast.stmt, ast.expr]] = []
    for statement in (s for s in walk(owner) if isinstance(s, ast.Expr)):
        match statement.value:
            case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=word), value, *_]):
                if word == name:
                    made.append((statement, value))
    return made[0][0] if len(made) == 1 and one_of(made[0][1], ZERO) else None


def one_of(made: ast.expr, values: tuple[object, ...]) -> bool:
    """Whether an expression is one of these values, or a tensor of it alone: `torch.tensor([True])`."""
    match made:
        case ast.Constant(value=value):
            return value in values
        case ast.List(elts=[one]):
            return one_of(one, values)
        case ast.Call(func=ast.Attribute(attr="tensor" | "Tensor" | "BoolTensor" | "ByteTensor"), args=[given]):
            return one_of(given, values)
        case ast.Call(func=ast.Attribute(attr="zeros" | "ones" as word), args=[ast.Constant(value=1)]):
            return (word == "ones") == (1 in values)
    return False


def only_set(owner: ast.ClassDef, flag: ast.AST) -> bool:
    """Whether a use of the flag only reads it, or sets it."""
    for node in walk(owner):
        match node:
            case ast.Call(func=ast.Attribute(value=used, attr="fill_" | "copy_"), args=[value]) if holds(used, flag):
                return one_of(value, ONE)
            case ast.Assign(targets=[target], value=value) if target is flag:
                return one_of(value, ONE)
            case ast.Assign(targets=[ast.Subscript(value=target)], value=value) if target is flag:
                return one_of(value, ONE)
            case ast.Call(func=ast.Attribute(value=used, attr=word)) if holds(used, flag):
                return word in ("item", "bool", "cpu")
            case ast.AugAssign(target=target) if target is flag:
                return False
            case ast.Call(args=[*given]) if flag in given:
                return isinstance(node.func, ast.Name) and node.func.id in ("bool", "int")
    return True


def holds(used: ast.expr, flag: ast.AST) -> bool:
    """Whether this is the flag, or `flag.data`."""
    return used is flag or (isinstance(used, ast.Attribute) and used.attr == "data" and used.value is flag)


def asked(function: Function, read: ast.expr) -> bool:
    """Whether only its truth is asked for: a condition, or a comparison with 0 or 1."""
    outer = function.parent(read)
    match outer:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=0 | 1)]):
            return left is read and asked(function, outer)
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp():
            return asked(function, outer)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return test is read
    return False


def evaluated(function: Function, statement: ast.stmt, read: ast.expr) -> bool:
    """Whether the flag is read whenever its statement runs; in `a and self.flag` it then is, too: that asks once more."""
    if function.runs_first(statement, read):
        return True
    inner = [n for n in function.around(read) if isinstance(n, CONDITIONAL)]
    return (
        all(isinstance(n, ast.BoolOp) for n in inner)
        and isinstance(statement, ast.If)
        and not function.is_elif(statement)
    )
