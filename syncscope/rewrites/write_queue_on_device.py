"""The place in a ring that is kept in a buffer, `ptr = int(self.queue_ptr)`, as positions on the device: MoCo's queue."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import alike, seen
from syncscope.codemod.patterns.numbers import is_whole, named, python_number
from syncscope.codemod.patterns.reads import number_read
from syncscope.codemod.whereabouts import apart
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

CHANGES = "{0} is a tensor, and places past the end of {1} are an error of the device, where a slice ends there"
EXAMPLES = (
    Example(
        """
        import torch

        def enqueue(queue: torch.Tensor, queue_ptr: torch.LongTensor, keys: torch.Tensor):
            batch_size = keys.shape[0]
            ptr = int(queue_ptr)  # !
            queue[:, ptr : ptr + batch_size] = keys.T  # the oldest go
            ptr = (ptr + batch_size) % queue.shape[1]
            queue_ptr[0] = ptr
        """,
        """
        import torch

        def enqueue(queue: torch.Tensor, queue_ptr: torch.LongTensor, keys: torch.Tensor):
            batch_size = keys.shape[0]
            ptr = queue_ptr
            queue[:, ptr + torch.arange(batch_size, device=ptr.device)] = keys.T.to(queue.dtype)  # the oldest go
            ptr = (ptr + batch_size) % queue.shape[1]
            queue_ptr.copy_(ptr)
        """,
        Safety.UNSAFE,
        "queue: finite[3, 4]; queue_ptr: index[1] < 3; keys: finite[2, 3]",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Memory(nn.Module):
            def __init__(self, size: int, dim: int):
                super().__init__()
                self.size = size
                self.register_buffer("bank", torch.zeros(size, dim))
                self.register_buffer("place", torch.zeros((), dtype=torch.long))

            def remember(self, x: torch.Tensor):
                at = self.place.item()  # !
                assert self.size % len(x) == 0
                self.bank[at : at + len(x)] = x.detach()
                self.place[...] = (at + len(x)) % self.size
        """,
        """
        import torch
        from torch import nn

        class Memory(nn.Module):
            def __init__(self, size: int, dim: int):
                super().__init__()
                self.size = size
                self.register_buffer("bank", torch.zeros(size, dim))
                self.register_buffer("place", torch.zeros((), dtype=torch.long))

            def remember(self, x: torch.Tensor):
                at = self.place
                assert self.size % len(x) == 0
                self.bank[at + torch.arange(len(x), device=at.device)] = x.detach().to(self.bank.dtype)
                self.place.copy_((at + len(x)) % self.size)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def enqueue(queue: torch.Tensor, queue_ptr: torch.LongTensor, keys: torch.Tensor):
            ptr = int(queue_ptr)  # !
            if ptr + len(keys) > len(queue):
                return
            queue[ptr : ptr + len(keys)] = keys
            queue_ptr[0] = (ptr + len(keys)) % len(queue)
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    pointer, start = number_read(function, site.node), function.parent(site.node)
    if (
        pointer is None
        or not named(pointer)
        or not isinstance(start, ast.Assign)
        or not isinstance(start.targets[0], ast.Name)
    ):
        return None
    name, draft = start.targets[0].id, Draft(function)
    ring: str | None = None
    back = False
    steps = after(function, start, name)
    if steps is None or function.shared(name) or len(start.targets) != 1:
        return None
    for step in steps:
        if back:  # the name is another one for the buffer, which has its new place by now
            return None
        if not mentions(step, name):
            continue
        match step:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name and moved(
                function, value, name
            ):
                pass
            case ast.Assign(targets=[ast.Subscript(value=base)], value=value) if alike(base, pointer):
                if not moved(function, value, name):
                    return None
                draft.replace(step, "{p}.copy_({v})", p=pointer, v=value)
                back = True
            case ast.Assign(targets=[ast.Subscript() as target]) if not mentions(step.value, name):
                ring = function.file.text(target.value)
                if apart(function, (target.value, pointer)) or not written(function, draft, step, target, name):
                    return None
            case _:
                return None
    if ring is None or not back:
        return None
    draft.replace(start.value, "{p}", p=pointer)
    return draft.fix("write at positions on the device", Safety.UNSAFE, CHANGES.format(name, ring))


def after(function: Function, start: ast.Assign, name: str) -> list[ast.stmt] | None:
    """The statements down to the last that has the name; None where it is read elsewhere, or others may write in between."""
    block = function.block(start)
    if start not in block:
        return None
    uses = [n for n in function.names(name) if n is not start.targets[0]]
    following = block[block.index(start) + 1 :]
    where = [function.statement(use) for use in uses]
    if not uses or any(statement not in following for statement in where):
        return None
    last = max(following.index(s) for s in where if s is not None)
    steps = following[: last + 1]
    calm = all(
        (isinstance(s, ast.Assign) and function.pure(s.value)) or (isinstance(s, ast.Assert) and function.pure(s.test))
        for s in steps
    )
    return steps if calm else None


def mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def moved(function: Function, value: ast.expr, name: str) -> bool:
    """Whether this is the place itself, or arithmetic of it and of whole numbers of the host: `(ptr + n) % size`."""
    match value:
        case ast.Name(id=own) if own == name:
            return True
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mod() | ast.Mult(), left=left, right=right):
            return moved(function, left, name) and whole(function, right)
    return False


def whole(function: Function, number: ast.expr) -> bool:
    """Whether this is a whole number of the host, or an attribute that no tensor is known of: `self.queue_size`."""
    return is_whole(function, number) or python_number(function, number) or not function.fact(number).is_tensor


def written(function: Function, draft: Draft, step: ast.Assign, target: ast.Subscript, name: str) -> bool:
    """Write `ring[:, ptr : ptr + n] = value` with positions; whether it is that."""
    index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    own = [i for i in index if mentions(i, name)]
    plain = all(ast.unparse(i) in (":", "...") for i in index if i not in own)
    if len(own) != 1 or not plain or not isinstance(own[0], ast.Slice) or own[0].step is not None:
        return False
    low, length = own[0].lower, seen(function, own[0].upper, "{p:name} + {n}")
    if not isinstance(low, ast.Name) or low.id != name or length is None or not isinstance(length["p"], ast.Name):
        return False
    if length["p"].id != name or not whole(function, length["n"]) or not function.pure(target.value):
        return False
    places = f"{name} + torch.arange({{n}}, device={name}.device)"
    told = ", ".join(places if i is own[0] else ast.unparse(i) for i in index)
    given = "{v}" if function.constant(step.value) is not None else "{v}.to({ring}.dtype)"
    draft.replace(step, f"{{ring}}[{told}] = {given}", ring=target.value, n=length["n"], v=step.value)
    return True
