"""`x.to(device)` with `non_blocking=True`, from a loader that pins its memory."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.listed import (
    NO_LINE_SAYS,
    OF_ANOTHER_LOADER,
    TAKEN_OVER,
    made_of_list,
    of_few,
    says_so,
    waits_around,
)
from syncscope.codemod.patterns.pinning import (
    loader_around,
    loader_of_file,
    loaders_of_callers,
    moved_by_collate,
    of_tensors,
    pin,
)
from syncscope.codemod.patterns.uploads import is_upload
from syncscope.codemod.together import together
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Fact, Site, Value
from syncscope.model.finding import Drawback, Fix, Safety
from syncscope.model.ops import Op
from syncscope.project.conventions import GIVES_BATCHES
from syncscope.project.syntax import name_of

MOVED_ALREADY = "where the loader's collate_fn has moved the batch already, nothing waits"
TOGETHER = True
MADE_ANEW = {f"torch.{each}" for each in "stack cat concat concatenate hstack vstack from_numpy".split()}
EXAMPLES = (
    Example(
        """
        import torch
        from torch.utils.data import DataLoader

        def train(model, data, device):
            loader = DataLoader(data, batch_size=64)
            for x, y in loader:
                x = x.to(device)  # !
                model(x).mean().backward()
        """,
        """
        import torch
        from torch.utils.data import DataLoader

        def train(model, data, device):
            loader = DataLoader(data, batch_size=64, pin_memory=torch.cuda.is_available())
            for x, y in loader:
                x = x.to(device, non_blocking=True)
                model(x).mean().backward()
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch
        from torch.utils.data import DataLoader
        from tqdm import tqdm

        def train(model, data):
            loader = DataLoader(
                data,
                batch_size=64,
            )
            bar = tqdm(loader)
            for step, (x, y) in enumerate(bar):
                model(x.cuda()).mean().backward()  # !
        """,
        """
        import torch
        from torch.utils.data import DataLoader
        from tqdm import tqdm

        def train(model, data):
            loader = DataLoader(
                data,
                batch_size=64,
                pin_memory=True,
            )
            bar = tqdm(loader)
            for step, (x, y) in enumerate(bar):
                model(x.cuda(non_blocking=True)).mean().backward()
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch
        from torch_geometric.data import DataLoader

        def train(model, data, device):
            loader = DataLoader(data, batch_size=64)
            for batch in loader:
                batch = batch.to(device)  # !
                model(batch.x).mean().backward()
        """,
        """
        import torch
        from torch_geometric.data import DataLoader

        def train(model, data, device):
            loader = DataLoader(data, batch_size=64, pin_memory=torch.cuda.is_available())
            for batch in loader:
                batch = batch.to(device, non_blocking=True)
                model(batch.x).mean().backward()
        """,
        Safety.UNSAFE,
    ),
)


PINS = re.compile(  # of a loader beside it, or of its settings
    rb"""pin_memory(?:(?:_device)?["']?\s*[=:]\s*(?!False)|(?<=\.pin_memory)\()"""
)
CHANGES = "nothing may write the tensor on the host before the copy is done"
FRACTIONS = ("float", "double", "half")
CONVERTS = frozenset("float double half long int bool".split())  # what has the dtype stays as it is
BESIDE = "what is copied beside it is waited for all the same"
NOT_PINNED = "nothing here pins its memory: more than 2 MB (on an H100) are waited for all the same"


class Copied(NamedTuple):
    """The copies of one statement, what mends them, and the loader that they are of."""

    calls: list[ast.Call]
    fix: Fix
    loader: ast.Call | None


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if statement is None:
        return None
    found = copied(function, statement)
    if found is None or site.node not in found.calls:
        return None
    block = function.block(statement)  # what a loader gives is copied there, all of it alike
    beside = [each for s in block if function.sites_in(s) and (each := copied(function, s)) is not None]
    if found.loader is None and any(each.fix.safety is Safety.SUGGEST for each in beside):
        return replace(found.fix, safety=Safety.SUGGEST, terms=(*found.fix.terms, BESIDE))
    fixes = [each.fix for each in beside if each.loader is found.loader and each.fix.safety is found.fix.safety]
    key = f"uploads, {found.fix.safety.value}"
    return function.once(key, block[0], lambda: together(fixes)) if len(fixes) > 1 else found.fix


def copied(function: Function, statement: ast.stmt) -> Copied | None:
    """The copies of a statement, looked at once."""
    return function.once("uploads", statement, lambda: of_statement(function, statement))


def of_statement(function: Function, statement: ast.stmt) -> Copied | None:
    """The copies of a statement that can go on alone, and the fix for all of them."""
    copies = (s for s in function.sites_in(statement) if s.op is Op.TO_DEVICE and is_upload(s, function))
    calls = [s.node for s in copies if isinstance(s.node, ast.Call)]
    if not calls:
        return None
    any_class = [call for call in calls if guessed(function, call)]
    if any_class and function.file.project.own_moves():  # a list of images with a mask, say: it would be an error
        return function.declines(
            any_class[0], "a class of this project has a `to` or `cuda` that takes no non_blocking"
        )
    draft = Draft(function)
    for call in calls:
        draft.add_argument(call, "non_blocking", "True")
    moved = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
    # whoever pins, what is kept or computed is no loader's
    of_loader = not any(kept_here(function, each) or computed(function, each) for each in moved)
    loaders = loaders_of(function, statement, moved) if of_loader else []
    if loaders:
        changes, safety = pinned_by(draft, loaders, anywhere=any(name_of(call.func) != "cuda" for call in calls))
    else:
        changes, safety = held_by(draft, moved, of_loader)
    if of_loader and moved_by_collate(function.file):
        changes, safety = (MOVED_ALREADY, *changes), Safety.SUGGEST
    if any_class:
        changes = (takes_it(function, loaders), *changes)
    return Copied(calls, draft.fix("copy while the host goes on", safety, *changes), loaders[0] if loaders else None)


def loaders_of(function: Function, statement: ast.stmt, moved: list[ast.expr]) -> list[ast.Call]:
    """The loaders that may have given what is moved: that of the loop around, the file's only one, or those of callers."""
    around = loader_around(function, statement) or loader_of_file(function, statement)
    return [around] if around is not None else loaders_of_callers(function, moved)


def pinned_by(draft: Draft, loaders: list[ast.Call], anywhere: bool) -> tuple[tuple[str, ...], Safety]:
    """What must be so once each of these loaders pins what it gives, and how sure that is."""
    changes: tuple[str, ...] = (CHANGES,)
    safety = Safety.UNSAFE
    for each in loaders:
        if not any(may_pin(draft.function, k) for k in each.keywords):
            pin(draft, draft.function, each, anywhere=anywhere)
            changes = (CHANGES, "the loader must give what lives on the host, or it cannot be pinned")
            safety = Safety.SUGGEST if of_tensors(draft.function, each) else safety
    return changes, safety


def may_pin(function: Function, given: ast.keyword) -> bool:
    """Whether an argument of a loader may have it pin what it gives: `pin_memory`, or settings that are not in sight."""
    if given.arg is not None:
        return given.arg == "pin_memory"
    match function.value(given.value):
        case ast.Dict(keys=keys) if all(isinstance(key, ast.Constant) for key in keys):
            return any(isinstance(key, ast.Constant) and key.value == "pin_memory" for key in keys)
    return True


def held_by(draft: Draft, moved: list[ast.expr], of_loader: bool) -> tuple[tuple[str, ...], Safety]:
    """What must be so of memory that no loader in sight has pinned, and how sure that is."""
    function = draft.function
    if of_loader and PINS.search(function.file.code) is not None:
        return (CHANGES,), Safety.UNSAFE
    others = b"DataLoader(" not in function.file.code  # of which one may pin; those of this file do not
    if of_loader and others and all(of_a_batch(function.fact(each)) for each in moved) and function.file.project.pins():
        draft.drawbacks.add(Drawback.UNPINNED)
        return (CHANGES, OF_ANOTHER_LOADER), Safety.UNSAFE
    if not all(of_few(function, each) and not waits_around(function, each) for each in moved):
        return (CHANGES, NOT_PINNED), Safety.SUGGEST
    draft.drawbacks.add(Drawback.UNPINNED)
    changes = (TAKEN_OVER,) if all(made_of_list(function, each) for each in moved) else (CHANGES, TAKEN_OVER)
    return (changes, Safety.UNSAFE) if says_so(function) else ((NO_LINE_SAYS, *changes), Safety.SUGGEST)


def takes_it(function: Function, loaders: list[ast.Call]) -> str:
    """What must be so of what is moved, with the class that gives it where it is no loader of torch's own."""
    named = (function.dotted(each.func) or "" for each in loaders)
    other = next((name for name in named if "." in name and not name.startswith("torch.")), None)
    if other is not None:
        return f"what `{other}` gives must take non_blocking, as a tensor does: classes of older versions may not"
    return "a batch of a class of your own must take non_blocking, as a tensor does"


def guessed(function: Function, call: ast.Call) -> bool:
    """Whether what is moved is a tensor for no better reason than that it comes out of a loader."""
    return isinstance(call.func, ast.Attribute) and function.fact(call.func.value).dtype is Dtype.UNKNOWN


def computed(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is made of another right here, `(x != 0).float()`: its memory is new, and nobody has pinned it."""
    made = function.reaching_definition(tensor) if isinstance(tensor, ast.Name) else None
    value = made.value if made is not None else tensor
    if gathered(function, tensor):
        return True
    while isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in CONVERTS:
            if value.func.attr in FRACTIONS and function.fact(value.func.value).dtype is not Dtype.FLOAT:
                return True  # who asks for a float has none, most often
            value = value.func.value
        elif function.dotted(value.func) == "torch.autograd.Variable" and len(value.args) == 1:
            value = value.args[0]
        else:
            break
    if isinstance(value, ast.Call) and function.dotted(value.func) in MADE_ANEW:
        return True
    return isinstance(value, (ast.BinOp, ast.Compare, ast.UnaryOp))


def gathered(function: Function, tensor: ast.expr) -> bool:
    """Whether a batch was put together by a call right here, `x, y = data.get_batch()`: which loader pins is not seen then."""
    bound = function.binds(tensor.id) if isinstance(tensor, ast.Name) else []
    made = {function.statement(each): each for each in bound}
    values = [each.value for each in made if isinstance(each, ast.Assign)]
    return any(isinstance(each, ast.Call) and name_of(each.func) in GIVES_BATCHES for each in values)


def kept_here(function: Function, tensor: ast.expr) -> bool:
    """Whether a tensor is one that an object keeps, or a part of it: `self.memory[0][:n]`."""
    while isinstance(tensor, (ast.Subscript, ast.Attribute)):
        if isinstance(tensor, ast.Attribute) and isinstance(tensor.value, ast.Name) and tensor.value.id == "self":
            return True
        tensor = tensor.value
    made = function.reaching_definition(tensor) if isinstance(tensor, ast.Name) else None
    return made is not None and not isinstance(made.value, ast.Name) and kept_here(function, made.value)


def of_a_batch(fact: Fact) -> bool:
    """Whether this is part of what a loader gave."""
    while fact.source is not None:
        fact = fact.source
    return fact.kind is Value.BATCH
