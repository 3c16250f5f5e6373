"""`self.kernel.to(x.device)` of a tensor that `__init__` makes: a buffer, which goes where its module goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import COPYING, DESCRIBED, SHAPING
from syncscope.model.example import Example
from syncscope.model.fact import Device, Dtype, Fact, Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.project import conventions
from syncscope.project.syntax import each_of, name_of, parents, walk

TOGETHER = True
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Blur(nn.Module):
            def __init__(self, size: int):
                super().__init__()
                self.kernel = torch.ones(1, 1, size, size) / size**2

            def forward(self, x: torch.Tensor):
                kernel = self.kernel.repeat(x.shape[1], 1, 1, 1).to(x.device)  # !
                return nn.functional.conv2d(x, kernel, groups=x.shape[1])
        """,
        """
        import torch
        from torch import nn

        class Blur(nn.Module):
            def __init__(self, size: int):
                super().__init__()
                self.register_buffer("kernel", torch.ones(1, 1, size, size) / size**2, persistent=False)

            def forward(self, x: torch.Tensor):
                kernel = self.kernel.repeat(x.shape[1], 1, 1, 1).to(x.device)
                return nn.functional.conv2d(x, kernel, groups=x.shape[1])
        """,
        Safety.UNSAFE,
        rule="blocking-upload",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Parity(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.order = torch.arange(n).flip(0)

            def forward(self, x: torch.Tensor):
                x = x.cuda()
                return x[:, self.order] + x  # !
        """,
        """
        import torch
        from torch import nn

        class Parity(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.register_buffer("order", torch.arange(n).flip(0), persistent=False)

            def forward(self, x: torch.Tensor):
                x = x.cuda()
                return x[:, self.order] + x
        """,
        Safety.UNSAFE,
        rule="host-tensor-as-index",
    ),
)
MOVES = {"to", "cuda", "type_as"}
PRECISE = ("freq", "cis", "rope")  # what rotates positions: as half a number, or as a real one, it is another
LEARNED = {"weight", "bias", "parameters"}
TENSORS = {"Parameter", "Buffer", "UninitializedBuffer"}  # what is registered as it is set


def rewrite(site: Site, function: Function) -> Fix | None:
    parts = each_of(site.node.slice) if isinstance(site.node, ast.Subscript) else []
    used = next(filter(None, map(kept, parts)), None) if parts else kept(site.node)
    if any(kept(part) is None and of_host(site.fact_of(part)) for part in parts):  # which is sent all the same
        return None
    owner = function.file.class_around(function.scope)
    if used is None or owner is None or function.fact(used.value).kind is not Value.MODULE:
        return None
    fact, made = function.fact(used), made_once(function, owner, used.attr)
    if made is None or not fact.is_tensor or fact.confidence < 2 or not only_sent(function, used.attr):
        return None
    if any(isinstance(n, ast.Attribute) and n.attr in LEARNED for n in walk(made.value)):  # its graph would go along
        return None
    if fact.dtype is Dtype.COMPLEX or any(word in used.attr for word in PRECISE):
        return None
    draft = Draft(function)
    begun = next(s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__")
    other = Draft(beginning(function, begun))
    value = other.node(made.value).with_changes(lpar=[], rpar=[])  # those of the call hold it together
    other.replace(made, f'self.register_buffer("{used.attr}", {{v}}, persistent=False)', v=value)
    draft.take(other)
    above = family(function, owner)
    if any(defines_getattr(cls) for cls in above if isinstance(cls, ast.ClassDef)):
        return function.declines(site.node, "its class looks attributes up in a `__getattr__` of its own")
    if any(
        sets(function, cls, used.attr) for cls in above if isinstance(cls, ast.ClassDef) and cls is not owner
    ) or named_in(function, owner, used.attr):
        return None  # `register_buffer` refuses what is there already
    changes = f"self.{used.attr} goes where the module goes, DDP broadcasts it"
    if fact.dtype is not Dtype.INT:
        changes += ", `model.half()` turns it, too"
    above_all = ""
    if any(isinstance(cls, str) and not cls.startswith("torch.") for cls in above):
        above_all = "no class above may set it"
    safety, must = moved_with(owner)
    return draft.fix("make it a buffer", safety, must, changes, above_all)


def defines_getattr(cls: ast.ClassDef) -> bool:
    """Whether a class decides where what is no plain attribute comes from, as a module does for its buffers."""
    return any(isinstance(s, ast.FunctionDef) and s.name == "__getattr__" for s in cls.body)


def moved_with(owner: ast.ClassDef) -> tuple[Safety, str]:
    """How safe a buffer is, and what must hold: most losses are moved nowhere and part of no module, and send it as before."""
    if not conventions.is_loss(owner.name):
        return Safety.UNSAFE, ""
    return Safety.SUGGEST, f"{owner.name} must be moved to the device itself, or be part of what is"


def beginning(function: Function, begun: ast.FunctionDef) -> Function:
    """The `__init__` of a class in the same file."""
    return function.file.once(f"beginning in line {begun.lineno}", lambda: Function(function.file, begun, ()))


def of_host(fact: Fact) -> bool:
    """Whether this is a tensor of the host that holds more than one number."""
    return fact.is_tensor and fact.device is Device.HOST and fact.ndim != 0


def kept(node: ast.AST) -> ast.Attribute | None:
    """The attribute of `self` that is sent, `self.kernel.repeat(3).to(d)`, or that is an index."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=word)) if word in MOVES | SHAPING | COPYING:
            return kept(inner)
        case ast.Subscript(value=inner, slice=index) if written_out(index):
            return kept(inner)
        case ast.Attribute(value=ast.Name(id="self")):
            return node
    return None


def written_out(index: ast.expr) -> bool:
    """Whether an index is made of slices and constants alone."""
    return all(isinstance(part, (ast.Slice, ast.Constant)) for part in each_of(index))


def made_once(function: Function, owner: ast.ClassDef, name: str) -> ast.Assign | None:
    """The statement of `__init__` that alone sets an attribute of a class, after the base class was set up."""
    match statement := set_up(function, owner, name):
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))], value=ast.Call() as made):
            return None if name_of(made.func) in TENSORS else statement
        case ast.Assign(targets=[_], value=ast.BinOp() | ast.UnaryOp() | ast.Subscript() | ast.Name()):
            return statement
    return None


def set_up(function: Function, owner: ast.ClassDef, name: str) -> ast.AST | None:
    """What holds an attribute where `__init__` sets it, after the base class was set up, and nothing else in the class does."""
    begun = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    stored = stored_in(function, owner).get(name, [])
    if begun is None or len(stored) != 1:
        return None
    around = parents(owner)
    top: ast.AST | None = stored[0]
    while top is not None and around.get(top) is not begun:
        top = around.get(top)
    at = next((at for at, s in enumerate(begun.body) if sets_up_base(s)), len(begun.body))
    return around[stored[0]] if top in begun.body[at + 1 :] else None


def stored_in(function: Function, cls: ast.ClassDef) -> dict[str, list[ast.Attribute]]:
    """The attributes that a class sets or deletes anywhere in it, by their names."""

    def found() -> dict[str, list[ast.Attribute]]:
        by_name: dict[str, list[ast.Attribute]] = {}
        for each in walk(cls):
            if isinstance(each, ast.Attribute) and not is_read(each):
                by_name.setdefault(each.attr, []).append(each)
        return by_name

    return function.file.once(f"stored in {cls.name} of line {cls.lineno}", found)


def family(function: Function, owner: ast.ClassDef) -> list[ast.ClassDef | str]:
    """A class and those above it, as far as they stand in this file; of the others their dotted names."""
    here = function.file.once("classes", lambda: {cls.name: cls for cls in function.file.classes})
    found: list[ast.ClassDef | str] = [owner]
    for cls in found:
        for base in cls.bases if isinstance(cls, ast.ClassDef) else ():
            known = here.get(base.id) if isinstance(base, ast.Name) else None
            if known is None:
                found.append(function.dotted(base) or "?")
            elif known not in found:
                found.append(known)
    return found


def sets(function: Function, cls: ast.ClassDef, name: str) -> bool:
    """Whether a class has an attribute, or sets it on its objects."""
    return named_in(function, cls, name) or name in stored_in(function, cls)


def named_in(function: Function, cls: ast.ClassDef, name: str) -> bool:
    """Whether a class itself has an attribute, a method or a property of this name."""
    return name in function.file.once(f"named in {cls.name} of line {cls.lineno}", lambda: set(_named_in(cls)))


def _named_in(cls: ast.ClassDef) -> Iterator[str]:
    for statement in cls.body:
        match statement:
            case ast.FunctionDef(name=own) | ast.AnnAssign(target=ast.Name(id=own), value=ast.expr()):
                yield own
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def is_read(node: ast.Attribute) -> bool:
    """Whether an attribute is neither set nor deleted here."""
    return isinstance(node.ctx, ast.Load)


def sets_up_base(statement: ast.stmt) -> bool:
    """Whether this is `super().__init__(...)`, before which a module has no buffers."""
    return isinstance(statement, ast.Expr) and (
        isinstance(statement.value, ast.Call) and name_of(statement.value.func) == "__init__"
    )


def only_sent(function: Function, name: str) -> bool:
    """Whether an attribute is used, wherever this file does so, to be sent, as an index, or to be asked for its shape."""
    outer = parents(function.file.tree)
    for node in filter(is_read, function.file.attributes.get(name, ())):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if not own and isinstance(outer[node], ast.Call):  # `x.mean()` beside `self.mean`
            continue
        at: ast.AST = node
        while True:
            above = outer[at]
            match above:
                case ast.Attribute(attr=word) if word in DESCRIBED | {"device", "ndim"} | MOVES:
                    break
                case ast.Attribute(attr=word) if word in SHAPING | COPYING and isinstance(outer[above], ast.Call):
                    at = outer[above]
                case ast.Subscript(value=value, slice=index) if value is at and written_out(index):
                    at = above
                case ast.Subscript(slice=index) if index is at:
                    break
                case ast.Tuple() if isinstance(whole := outer[above], ast.Subscript) and whole.slice is above:
                    break
                case _:
                    return False
    return True
