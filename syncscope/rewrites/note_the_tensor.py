"""`self.history.append(loss.item())`, `stats["loss"] = loss.item()`, `self.log("loss", loss.item())`: the tensor is noted."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.lightning_logs import surely_tells_lightning, tells_lightning
from syncscope.codemod.patterns.reads import detached, tensor_read
from syncscope.codemod.proofs import one_value
from syncscope.codemod.whereabouts import made_on_host
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety, Way

ROUNDS = True
WAY = Way.NOTES
EXAMPLES = (
    Example(
        """
        import torch
        from lightning.pytorch import LightningModule

        class Model(LightningModule):
            def training_step(self, batch: torch.Tensor, index: int):
                near, far = self(batch)
                near, far = near.mean(), far.mean()
                self.log("near", near.item(), prog_bar=True)  # !
                self.log("far", far.item(), prog_bar=True)  # !
                return near + far
        """,
        """
        import torch
        from lightning.pytorch import LightningModule

        class Model(LightningModule):
            def training_step(self, batch: torch.Tensor, index: int):
                near, far = self(batch)
                near, far = near.mean(), far.mean()
                self.log("near", near.detach(), prog_bar=True)
                self.log("far", far.detach(), prog_bar=True)
                return near + far
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch
        from lightning.pytorch import LightningModule

        class Model(LightningModule):
            def training_step(self, batch: torch.Tensor, index: int):
                loss = self(batch).mean()
                self.log("loss", loss.item(), prog_bar=True)  # !
                return loss
        """,
        """
        import torch
        from lightning.pytorch import LightningModule

        class Model(LightningModule):
            def training_step(self, batch: torch.Tensor, index: int):
                loss = self(batch).mean()
                self.log("loss", loss.detach(), prog_bar=True)
                return loss
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        class Trainer:
            def compute_loss(self, model: torch.nn.Module, x: torch.Tensor):
                out = model(x)
                loss = out.mean()
                self._metrics["train"]["loss"].append(self.gather(loss).mean().item())  # !
                return loss
        """,
        """
        import torch

        class Trainer:
            def compute_loss(self, model: torch.nn.Module, x: torch.Tensor):
                out = model(x)
                loss = out.mean()
                self._metrics["train"]["loss"].append(self.gather(loss).mean().detach())
                return loss
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x: torch.Tensor, y: torch.Tensor):
                loss = torch.nn.functional.mse_loss(x, y)
                stats = dict(loss=loss.item() if self.training else None)  # !
                loss = self.weigh(loss)
                stats.update(weighed=loss.mean().item())  # !
                loss += self.alpha.sum()
                stats["alpha"] = self.alpha.data.item()  # !
                return loss, stats
        """,
        """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x: torch.Tensor, y: torch.Tensor):
                loss = torch.nn.functional.mse_loss(x, y)
                stats = dict(loss=loss.detach().clone() if self.training else None)
                loss = self.weigh(loss)
                stats.update(weighed=loss.mean().detach())
                loss += self.alpha.sum()
                stats["alpha"] = self.alpha.detach().clone()
                return loss, stats
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Model(torch.nn.Module):
            def training_step(self, x: torch.Tensor, y: torch.Tensor):
                loss = torch.nn.functional.mse_loss(self(x), y)
                self.total += loss.item() * len(x)  # !
                self.spread = 0.9 * self.spread + 0.1 * x.std().item()  # !
                return loss
        """,
        """
        import torch

        class Model(torch.nn.Module):
            def training_step(self, x: torch.Tensor, y: torch.Tensor):
                loss = torch.nn.functional.mse_loss(self(x), y)
                self.total += loss.detach() * len(x)
                self.spread = 0.9 * self.spread + 0.1 * x.std().detach()
                return loss
        """,
        Safety.SUGGEST,
    ),
)
LOGGED = "it is kept in the tensor's own dtype, and read where it is written down"
SUMMED = "then is a tensor: read it where it is written down"
COMPARED = "what compares or prints it before waits there"
HELD = "then holds tensors: read them where they are written down, all at once"
ALL_COMPARED = "what compares or prints them before waits there"
WRITTEN = "must be on the device that the tensor is on"


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor = tensor_read(function, site.node)
    if tensor is None or not isinstance(site.node, ast.expr):
        return None
    noted = _whole(function, site.node)
    entry = function.parent(noted)
    call = function.parent(entry) if isinstance(entry, (ast.keyword, ast.Dict)) else entry
    logged = tells_lightning(call)
    if not logged and (total := _total(function, noted, entry)):
        draft = Draft(function)
        draft.replace(site.node, "{t}.detach()", t=detached(function, tensor))
        return draft.fix("note the tensor", Safety.SUGGEST, f"{total} {SUMMED}", COMPARED)
    holder = "" if logged else _holder(function, noted, entry)
    if not logged and not holder:
        return None
    if why := _takes_a_number(function, entry):
        return function.declines(site.node, why)
    draft = Draft(function)
    value = detached(function, tensor)
    kept = not logged and _may_change(function, value)  # Lightning keeps a copy of its own
    draft.replace(site.node, "{t}.detach().clone()" if kept else "{t}.detach()", t=value)
    if not logged:
        changes = [f"{holder} {WRITTEN}"] if _is_tensor(function, entry) else [f"{holder} {HELD}", ALL_COMPARED]
        return draft.fix("note the tensor", Safety.SUGGEST, *changes)
    sure = surely_tells_lightning(call)
    return draft.fix("note the tensor", Safety.UNSAFE if sure else Safety.SUGGEST, LOGGED)


def _takes_a_number(function: Function, entry: ast.AST | None) -> str:
    """Why what is written into is, or may be, no list or dict: to write into a tensor of the host waits as well, and an array
    takes no tensor of a device; "" where it takes one without a wait.
    """
    match entry:
        case ast.Assign(targets=[ast.Subscript(value=holder, slice=key)]):
            fact, name = function.fact(holder), function.file.quote(holder)
        case _:
            return ""
    if fact.kind is Value.ARRAY:
        return f"{name} is an array of numpy's, which takes no tensor of a device: a list takes it"
    if fact.kind is Value.SEQUENCE or fact.on_device:
        return ""
    if made_on_host(function, holder):
        return (
            f"{name} is on the host, so to write a tensor there waits as well: a list, or one on the device, takes it"
        )
    numbered = any(isinstance(n, ast.Slice) or function.fact(n).kind is Value.SCALAR for n in _parts(key))
    return f"nothing says that {name} is a list, or on the device" if numbered else ""


def _is_tensor(function: Function, entry: ast.AST | None) -> bool:
    match entry:
        case ast.Assign(targets=[ast.Subscript(value=holder)]):
            return function.fact(holder).is_tensor
    return False


def _parts(key: ast.expr) -> list[ast.expr]:
    return key.elts if isinstance(key, ast.Tuple) else [key]


def _may_change(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor may be written after it was noted: a parameter, what an object holds, what is added to in place."""
    if not isinstance(tensor, ast.Name):
        return isinstance(tensor, (ast.Attribute, ast.Subscript))
    added = any(function.same_name(n.target, tensor) for n in function.every(ast.AugAssign))
    return added or any(
        function.same_name(n.value, tensor) and n.attr.endswith("_") and isinstance(function.parent(n), ast.Call)
        for n in function.every(ast.Attribute)
    )


def _whole(function: Function, read: ast.expr) -> ast.expr:
    """What is noted of a number: itself, one of two that are chosen from, or scaled by another number."""
    while True:
        match function.parent(read):
            case ast.IfExp(test=test) as outer if read is not test:
                read = outer
            case ast.BinOp(left=left, right=right, op=ast.Mult() | ast.Div()) as outer if one_value(
                function, function.fact(other := right if read is left else left), other
            ):
                read = outer
            case _:
                return read


def _holder(function: Function, noted: ast.expr, entry: ast.AST | None) -> str:
    """The name of the container that a number is put into, and that nothing here asks for it; "" for anything else."""
    outer = function.parent(entry) if entry is not None else None
    key: ast.expr | None = None
    match entry, outer:
        case ast.Call(func=ast.Attribute(value=holder, attr="append"), args=[given]), _ if given is noted:
            return function.file.text(holder) if _root(holder) == "self" else ""
        case ast.Dict(), ast.List() if isinstance(added := function.parent(outer), ast.AugAssign):
            return function.file.text(added.target)  # reports += [{"loss": loss.item()}]
        case ast.Assign(targets=[ast.Subscript(value=holder, slice=key)]), _:
            pass
        case ast.keyword(arg=str(word)), ast.Call(func=ast.Attribute(value=holder, attr="update")):
            key = ast.Constant(word)
        case ast.Dict(), ast.Call(func=ast.Attribute(value=holder, attr="update" | "append")):
            key = _key(entry, noted)
        case ast.keyword(arg=str(word)), ast.Call(func=ast.Name(id="dict")):
            match function.parent(outer):
                case ast.Assign(targets=[ast.Name() as holder]):
                    key = ast.Constant(word)
                case _:
                    return ""
        case ast.Dict(), ast.Assign(targets=[ast.Name() as holder]):
            key = _key(entry, noted)
        case _:
            return ""
    asked = (n for n in function.every(ast.Subscript) if isinstance(n.ctx, ast.Load) and _root(n) == _root(holder))
    if not _root(holder) or key is None or any(function.same(n.slice, key) for n in asked):
        return ""
    return "" if _is_sorted_by_kind(function, _root(holder)) else function.file.text(holder)


def _is_sorted_by_kind(function: Function, holder: str) -> bool:
    """Whether it matters here which values of a container are numbers: `isinstance(v, torch.Tensor)`, `json.dumps(holder)`."""
    parts: set[str] = set()
    for each in (*function.every(ast.comprehension), *function.every(ast.For)):
        over = each.iter
        while isinstance(over, ast.Call):  # `list(holder.items())`
            over = over.func.value if isinstance(over.func, ast.Attribute) else over.args[0] if over.args else over.func
        if _root(over) == holder:
            parts.update(n.id for n in ast.walk(each.target) if isinstance(n, ast.Name))
    for call in function.every(ast.Call):
        of = call.args[0] if call.args else None
        match call.func:
            case ast.Name(id="isinstance" | "type") | ast.Attribute(attr="is_tensor"):
                if (isinstance(of, ast.Name) and of.id in parts) or (
                    isinstance(of, ast.Subscript) and _root(of) == holder
                ):
                    return True
            case ast.Attribute(attr="dump" | "dumps") if isinstance(of, ast.Name) and of.id == holder:
                return True
    return False


def _total(function: Function, noted: ast.expr, entry: ast.AST | None) -> str:
    """What an object keeps that a number is added to, also as a running mean: `self.total += loss.item()`; "" otherwise."""
    match entry:
        case ast.AugAssign(target=ast.Attribute(value=ast.Name(id="self")) as total, op=ast.Add(), value=value) if (
            value is noted
        ):
            pass
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            other = right if left is noted else left
            match function.parent(entry):
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self")) as total], value=value) if (
                    value is entry
                ):
                    if not any(isinstance(n, ast.Attribute) and n.attr == total.attr for n in ast.walk(other)):
                        return ""
                case _:
                    return ""
        case _:
            return ""
    if made_on_host(function, total):
        return ""
    own = [n for n in function.every(ast.Attribute) if n.attr == total.attr and isinstance(n.ctx, ast.Load)]
    inside = {id(n) for n in ast.walk(function.statement(noted) or noted)}
    return function.file.text(total) if all(id(n) in inside for n in own) else ""


def _key(entry: ast.AST, noted: ast.expr) -> ast.expr | None:
    """The key of a value in a dict that is written out."""
    pairs = zip(entry.keys, entry.values, strict=True) if isinstance(entry, ast.Dict) else ()
    return next((key for key, value in pairs if value is noted), None)


def _root(node: ast.expr) -> str:
    """The name from which a container is reached: `self` of `self.kept["loss"]`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
