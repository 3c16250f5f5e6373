"""`x[torch.arange(n), i]` with the index made where `x` is: `torch.arange(n, device=x.device)`."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Sequence

from syncscope.codemod.draft import Draft
from syncscope.codemod.enclosure import LOOPS
from syncscope.codemod.function import Function
from syncscope.codemod.index_elsewhere import may_be_of_host
from syncscope.codemod.patterns.listed import TAKEN_OVER
from syncscope.codemod.patterns.made_on_host import DESCRIBED, DRAWN, SAME, TYPES, Made, made_on_host
from syncscope.codemod.patterns.numbers import named, new_number, too_large, written_out
from syncscope.model.example import Example
from syncscope.model.fact import Device, Dtype, Site
from syncscope.model.finding import Drawback, Fix, Safety
from syncscope.project.syntax import each_of

COMPILES = True
TOGETHER = True
EXAMPLES = (
    Example(
        """
        import torch

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def forward(x: torch.FloatTensor, labels: torch.LongTensor):
            x = torch.zeros(x.shape, device=device) + x
            rows = torch.arange(x.shape[0])[:, None]
            return x[torch.arange(len(x)), labels].sum() + x[rows, labels[:, None]]  # !
        """,
        """
        import torch

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def forward(x: torch.FloatTensor, labels: torch.LongTensor):
            x = torch.zeros(x.shape, device=device) + x
            rows = torch.arange(x.shape[0], device=x.device)[:, None]
            return x[torch.arange(len(x), device=x.device), labels].sum() + x[rows, labels[:, None]]
        """,
        Safety.SAFE,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, kept: int):
            x = x.cuda()
            order = torch.randperm(len(x))[:kept]
            return x[order]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, kept: int):
            x = x.cuda()
            order = torch.randperm(len(x), device=x.device)[:kept]
            return x[order]
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def sampled(x: torch.Tensor, weights: torch.Tensor, kept: int):
            x, weights = x.cuda(), weights.cuda()
            order = torch.randperm(x.shape[1])[:kept]
            x = x[:, order]  # !
            return x * weights[:, order]  # !
        """,
        """
        import torch

        def sampled(x: torch.Tensor, weights: torch.Tensor, kept: int):
            x, weights = x.cuda(), weights.cuda()
            order = torch.randperm(x.shape[1], device=x.device)[:kept]
            x = x[:, order]
            return x * weights[:, order]
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def shuffled(x: torch.Tensor, n: int, d: int):
            x = x.cuda()
            rows = torch.arange(n * d).view(d, n).t().reshape(n * d)
            return x[rows, :][:, torch.arange(d)]  # !
        """,
        """
        import torch

        def shuffled(x: torch.Tensor, n: int, d: int):
            x = x.cuda()
            rows = torch.arange(n * d, device=x.device).view(d, n).t().reshape(n * d)
            return x[rows, :][:, torch.arange(d, device=x.device)]
        """,
        Safety.SAFE,
    ),
)
EXACT = SAME | {"torch.arange"}  # of an index, whose numbers are whole
DREW = "the device's generator draws other numbers for the same seed"


TITLE = "make the index on the device"


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not named(whole := indexed_in(function, taken)):
        return None
    parts = [p for p in each_of(taken.slice) if function.fact(p).is_tensor and function.fact(p).device is Device.HOST]
    if any(function.fact(part).dtype is Dtype.BOOL for part in parts) and not filled(function, taken):
        return function.declines(taken, "the true elements of the mask would be looked for on the device")
    made = [made_on_host(function, part) for part in parts]
    if not any(made) and parts and isinstance(parts[0], ast.Name) and all(function.same(p, parts[0]) for p in parts):
        return of_name(function, parts[0], taken)
    if not parts:
        return None
    calls = [call for each in made if each is not None for call in each.calls]
    drawn = [call for call in calls if function.dotted(call.func) in DRAWN]
    if why := (
        _made_elsewhere(function, parts, made)
        or _made_otherwise(function, calls)
        or _not_there(function, taken, whole, calls)
    ):
        return function.declines(taken, why)
    draft = Draft(function)
    make_on(draft, calls, whole)
    changes = [DREW] if drawn else []
    others = [part for part in each_of(taken.slice) if may_be_of_host(function, part)]
    for part in others:  # else the wait stays
        draft.replace(part, "{i}.to({x}.device, non_blocking=True)", i=part, x=whole)
        changes.append(f"{function.file.text(part)} must be a tensor, and is sent: {TAKEN_OVER}")
        draft.drawbacks.add(Drawback.UNPINNED)
    if function.fact(whole).confidence < 2:
        changes.append(f"{function.file.text(whole)} must be a tensor")
    else:
        with_number(function, taken, draft)
    return draft.fix(TITLE, tier(drawn, changes), *changes, redraws=bool(drawn))


def _made_elsewhere(function: Function, parts: Sequence[ast.expr], made: Sequence[Made | None]) -> str:
    """Which part of an index is made where nobody sees it; "" where none is."""
    for part, each in zip(parts, made, strict=True):
        if each is None or any(function.dotted(call.func) in TYPES for call in each.calls):
            return f"how {function.file.quote(part)} is made is not in sight"
    return ""


def _made_otherwise(function: Function, calls: Iterable[ast.Call]) -> str:
    """Why what these calls make may be another index on the device; "" where it is not."""
    made = next((call for call in calls if function.dotted(call.func) not in EXACT | DRAWN), None)
    return f"{function.file.quote(made)} may give other values on the device" if made is not None else ""


def indexed_in(function: Function, taken: ast.Subscript) -> ast.expr:
    """What is indexed; of what is taken of a tensor just there, `k[:, i][j]`, that tensor, which lives where its parts do."""
    whole = taken.value
    while not named(whole) and isinstance(whole, ast.Subscript) and function.fact(whole.value).is_tensor:
        whole = whole.value
    return whole


def _not_there(function: Function, taken: ast.Subscript, whole: ast.expr, calls: Iterable[ast.Call]) -> str:
    """Why the index cannot be made where the indexed lives; "" where it can."""
    there = all(there_before(function, taken, whole, call) for call in calls)
    return "" if there else f"{function.file.quote(whole)} may be another tensor where the index is made"


def make_on(draft: Draft, calls: Iterable[ast.Call], there: ast.expr) -> None:
    """Have these calls make what they do on the device of a tensor."""
    for call in calls:
        draft.replace(call, "{call}", call=draft.call(call, {}, device=draft.part("{x}.device", x=there)))


def tier(drawn: Iterable[ast.Call], changes: Sequence[str]) -> Safety:
    """How safe an index is that is made on the device: who seeds a run wants its numbers again."""
    return Safety.SUGGEST if drawn else Safety.UNSAFE if changes else Safety.SAFE


def with_number(function: Function, taken: ast.Subscript, draft: Draft) -> None:
    """Make a number on the device, too, that is written at the index: it would be waited for all the same."""
    match function.statement(taken):
        case ast.Assign(targets=[target], value=value) as assign if (
            target is taken and assign.lineno == assign.end_lineno and not filled_by_mask(function, taken)
        ):
            if written_out(function, value) and not too_large(function, value):
                draft.replace(value, "{number}", number=new_number(draft, taken.value, value))


def filled_by_mask(function: Function, taken: ast.Subscript) -> bool:
    """Whether a mask says what is written: such a number is not waited for."""
    return any(function.fact(part).dtype is Dtype.BOOL for part in each_of(taken.slice))


def of_name(function: Function, name: ast.Name, taken: ast.Subscript) -> Fix | None:
    """The fix for an index that has a name and selects from several tensors, or twice from one: `m[:, kept], mask[:, kept]`."""
    assign = function.reaching_definition(name)
    if assign is None:
        return function.declines(taken, f"`{name.id}` may be bound in several places")
    found = function.once("index made", split(function, assign)[0], lambda: shared(function, assign))
    return found if isinstance(found, Fix) else function.declines(taken, found) if found else None


def shared(function: Function, assign: ast.Assign) -> Fix | str:
    """The same, of the assignment that makes the index, and of those that take slices of it: they serve as indices wherever
    they are read, or are asked for their size. Else why there is none.
    """
    whole, slices = split(function, assign)
    made = made_on_host(function, whole.value)
    uses = [use for each in slices or [whole] for use in function.seen_by(each)]
    taken = [selected(function, use) for use in uses if not described(function, use)]
    indexed = [each for each in taken if each is not None and named(each.value)]
    if made is None or any(call not in made_here(whole) for call in made.calls):
        return f"how {function.file.quote(whole.targets[0])} is made is not in sight"
    if not indexed or len(indexed) < len(taken):
        return f"{function.file.quote(whole.targets[0])} is no index alone: something else takes it, too"
    if why := _made_otherwise(function, made.calls):
        return why
    if not all(serves(function, whole, use) for use in uses):
        return "what is indexed may change between passes of a loop in which the index stays"
    there = known_there(function, whole, indexed, made.calls[0])
    if there is None:
        return "no tensor of the device is known to be there where the index is made"
    drawn = [call for call in made.calls if function.dotted(call.func) in DRAWN]
    draft = Draft(function)
    make_on(draft, made.calls, there)
    changes = [DREW] if drawn else []
    if any(not function.same(t.value, there) for t in indexed):
        changes.append("all that it selects from must live on one device")
    if function.fact(there).confidence < 2:
        changes.append(f"{function.file.text(there)} must be a tensor")
    return draft.fix(TITLE, tier(drawn, changes), *changes, redraws=bool(drawn))


def known_there(
    function: Function, whole: ast.Assign, indexed: Sequence[ast.Subscript], made: ast.Call
) -> ast.expr | None:
    """A tensor of which the index is taken that is there where it is made, the surest first; None: there is none."""
    known = [n for n in ast.walk(whole.value) if isinstance(n, ast.Name) and function.fact(n).is_tensor]
    bases: list[ast.expr] = [t.value for t in indexed if any(function.same(t.value, n) for n in known)]
    bases += [t.value for t in indexed if there_before(function, t, t.value, made)]
    bases += known  # what it counts the rows of, say
    return next((each for each in bases if function.fact(each).confidence >= 2), bases[0] if bases else None)


def split(function: Function, assign: ast.Assign) -> tuple[ast.Assign, list[ast.Assign]]:
    """The assignment that makes what another takes a slice of, `order[:kept]`, and all that do; itself where it takes none."""
    match assign.value:
        case ast.Subscript(value=ast.Name() as name, slice=ast.Slice()):
            whole = function.reaching_definition(name)
            uses = function.seen_by(whole) if whole is not None else []
            taken = [function.statement(use) for use in uses if isinstance(function.parent(use), ast.Subscript)]
            slices = [each for each in taken if isinstance(each, ast.Assign) and is_slice(each)]
            if whole is not None and 0 < len(slices) == len(uses) and all(map(function.seen_by, slices)):
                return whole, slices
    return assign, []


def is_slice(assign: ast.Assign) -> bool:
    """Whether an assignment gives a name a slice of another."""
    match assign:
        case ast.Assign(targets=[ast.Name()], value=ast.Subscript(value=ast.Name(), slice=ast.Slice())):
            return True
    return False


def serves(function: Function, assign: ast.Assign, use: ast.Name) -> bool:
    """Whether an index is made in the loop of its use, or before that loop, in which what it is taken from stays the same."""
    own, around, taken = function.loop(assign), function.around(use), selected(function, use)
    if own is not None and own not in around:
        return False  # the last of a loop's indices is taken behind it
    base = taken.value if taken is not None else None
    binds = function.binds(base.id) if isinstance(base, ast.Name) else []
    loops = itertools.takewhile(lambda each: each is not own, (n for n in around if isinstance(n, LOOPS)))
    return not any(loop in function.around(bind) for loop in loops for bind in binds)


def made_here(assign: ast.Assign) -> list[ast.AST]:
    """What stands in an assignment."""
    return list(ast.walk(assign.value))


def described(function: Function, use: ast.Name) -> bool:
    """Whether an index is only asked for its size here."""
    parent = function.parent(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr in DESCRIBED
    return isinstance(parent, ast.Call) and function.dotted(parent.func) == "len"


def selected(function: Function, use: ast.Name) -> ast.Subscript | None:
    """What a name is an index of."""
    above = function.parent(use)
    if isinstance(above, ast.Tuple):
        above = function.parent(above)
    return above if isinstance(above, ast.Subscript) and use in each_of(above.slice) else None


def there_before(function: Function, taken: ast.Subscript, whole: ast.expr, call: ast.Call) -> bool:
    """Whether what is indexed is the same tensor where a part of the index is made: in one statement, or bound before both."""
    here, there = function.statement(taken), function.statement(call)
    if here is there:
        return function.pure(whole)
    if here is None or there is None or not isinstance(whole, ast.Name):
        return False
    name, begin, end = whole.id, function.file.span(there).start, function.file.span(here).start
    binds = [(bind, function.file.span(bind).start) for bind in function.binds(name)]
    if function.captured(name) or any(begin <= at < end for _, at in binds):
        return False
    before = (function.statement(bind) for bind, at in binds if at < begin)
    given = name in function.parameters
    return given or any(made is not None and function.block(made) is function.block(there) for made in before)


def filled(function: Function, taken: ast.Subscript) -> bool:
    """Whether a number is written to what is selected."""
    match function.statement(taken):
        case ast.Assign(targets=[target], value=value) if target is taken:
            return function.constant(value) is not None
    return False
