"""A copy from the host to the device that the host waits for: `x.to(device)`, `x.cuda()`.

Why it waits
------------
Memory that is not pinned can be paged out, so the host copies it itself and goes on only afterwards. From pinned memory,
and with `non_blocking=True`, the device fetches it while the host goes on.

What to do
----------
- A batch: let the loader pin its memory, and say `non_blocking=True`.
- A replay buffer that is filled row by row, `self.states[i] = torch.from_numpy(s)`: keep it on the host, where a row costs
  nothing, and send what is drawn of it at once, `states[rows].pin_memory().to(device, non_blocking=True)`.
- A rollout: keep its rows in one array of the host, and send that with one copy before the update.

When a fix pays
---------------
For batches of megabytes, and where the device still has work when the copy is asked for; the loader must pin its memory. Not
for a few numbers, and not where the step waits for the loader anyway.
A module is moved as a whole, most often once: that is told among what is cold (`--all`), and pays where it is moved again and
again, or where it can be made on the device (`with torch.device("cuda"):`).

What is filled on the host with numbers alone, `x = torch.zeros(n, 9)`, `x[:, 7] = 1`, or computed there of what is made of
nothing else, `torch.cat([torch.ones(1), torch.zeros(n)])`, needs no copy: say `device=` where it is made.

What a module makes in `__init__` and sends in every step, `self.kernel.to(x.device)`, is a buffer: then it is sent with the
module, once. What another object makes there, a table of a scheduler's, is kept where it was sent,
`self.table = self.table.to(x.device)`: after the first call there is nothing to copy.

Fix safety
----------
Safe where all parts are made on the device and only shaped and joined: the same tensor; unsafe where they are computed with,
or drawn at random. A buffer is unsafe, because `model.half()` turns it with the rest; a table that is kept on the device is,
because whoever reads it elsewhere finds it there. A copy that nobody waits for is unsafe, because the tensor on the host must
then not be written before the copy is done; a batch of a loader never is. Where the loader is made in the same file, it gets
`pin_memory=torch.cuda.is_available()`: without a GPU torch warns of `True`. Where nothing pins the memory it is suggested,
not applied, but for a few numbers in a project that says `non_blocking=True` elsewhere: it is enough for those, and no help
for megabytes. Then say `x.pin_memory().to(device, non_blocking=True)`, send fewer bytes (`uint8`, made `float` on the
device), or send it earlier. `pin_memory()` is an error where there is no GPU, so it is not written for you.
"""

from __future__ import annotations

import ast

from syncscope.codemod.patterns.kept import set_by_init
from syncscope.codemod.patterns.made_on_host import made_on_host
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.TO_DEVICE,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to", "write_buffer", "write_image")
REWRITES = (
    "make_parts_on_device",
    "register_buffer",
    "keep_where_sent",
    "copy_without_waiting",
)
FILLED = {"torch.zeros", "torch.ones", "torch.full", "torch.eye", "torch.arange"}
EXAMPLES = (
    Example(
        """
        import torch
        from torch.utils.data import DataLoader

        def train(model, data, device):
            loader = DataLoader(data, batch_size=64, pin_memory=True)
            for x, y in loader:
                x = x.to(device, non_blocking=True)
                model(x).mean().backward()
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    if site.fact.kind is Value.MODULE:
        return f"{view.quote(site.node)} copies the parameters of a module from the host, and waits for each"
    there = made_of_constants(site, view) or _made_of_calls(site, view)
    instead = "make it there, or say non_blocking=True" if there else "pin the memory and say non_blocking=True"
    if _is_table(site, view):
        instead = "what never changes is sent once, and kept there"
    if _is_row(site, view):
        instead = "a buffer that is filled row by row is better kept on the host, and what is taken of it sent at once"
    return f"{view.quote(site.node)} copies from the host and waits for it: {instead}"


def _is_row(site: Site, view: View) -> bool:
    """Whether what is copied is written at one place of something: `self.states[self.at] = torch.from_numpy(state)`."""
    function = view.function(site)
    match function.parent(site.node):
        case ast.Assign(targets=[ast.Subscript(slice=place)], value=value) as statement if value is site.node:
            loop = function.loop(statement)
            if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple) and _same(place, loop.target.elts[0]):
                return False  # of a batch, one of its parts: `for key, part in batch.items()`
            return any(isinstance(n, (ast.Name, ast.Attribute)) for n in getattr(place, "elts", [place]))
    return False


def _same(one: ast.expr, other: ast.expr) -> bool:
    return isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id == other.id


def _is_table(site: Site, view: View) -> bool:
    """Whether what is copied is kept by an object that is no module, as its `__init__` makes it: `self.table.to(x.device)`."""
    match site.node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self") as own, attr=name))):
            function = view.function(site)
            return function.fact(own).kind is not Value.MODULE and set_by_init(function, name)
    return False


def _made_of_calls(site: Site, view: View) -> bool:
    """Whether what is copied is computed of nothing but tensors that are made on the host, and numbers."""
    match site.node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="to" | "cuda")):
            return made_on_host(view.function(site), tensor) is not None
    return False


def made_of_constants(site: Site, view: View) -> bool:
    """Whether what is copied was filled on the host with numbers alone: `x = torch.zeros(n, 9); x[:, 7] = 1`."""
    function, name = view.function(site), site.operand
    made = function.reaching_definition(name) if isinstance(name, ast.Name) else None
    if made is None or not isinstance(name, ast.Name) or not isinstance(made.value, ast.Call):
        return False
    if function.dotted(made.value.func) not in FILLED:
        return False
    start, end = view.span(made).end, view.span(name).start
    between = [n for n in function.reads(name.id) if start <= view.span(n).start < end]
    return all(_takes_constant(function, n) for n in between)


def _takes_constant(function: Function, name: ast.Name) -> bool:
    """Whether a tensor is written here, a number to a place of numbers: `x[:, 7] = 1`."""
    entry = function.parent(name)
    match function.parent(entry) if isinstance(entry, ast.Subscript) and entry.value is name else None:
        case ast.Assign(targets=[ast.Subscript(slice=place)], value=value) if function.constant(value) is not None:
            return not any(isinstance(n, (ast.Name, ast.Attribute, ast.Call)) for n in ast.walk(place))
    return False


def certain(site: Site, function: Function) -> bool:
    return True  # sent without waiting it holds the same, wherever it goes
