"""`torch.tensor(0.5, device=d)` as `torch.full((), 0.5, device=d)`; what is filled with 0 or 1 is `zeros` or `ones`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.asked import may_be_several
from syncscope.codemod.patterns.numbers import (
    as_long,
    element,
    filling,
    is_bool,
    is_whole,
    of_a_range,
    of_equals,
    own_int,
    special,
    too_large,
)
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety

TOGETHER = "made"
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            rows = torch.tensor([x.shape[0]], device=x.device)  # !
            return torch.cat([torch.tensor([len(x)], dtype=torch.long, device=x.device), rows, x])  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            rows = torch.full((1,), x.shape[0], device=x.device)
            return torch.cat([torch.full((1,), len(x), dtype=torch.long, device=x.device), rows, x])
        """,
        Safety.SAFE,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def falling(x: torch.Tensor):
            n = x.shape[0]
            return x / torch.tensor(range(n, 0, -1), dtype=x.dtype, device=x.device)  # !
        """,
        """
        import torch

        def falling(x: torch.Tensor):
            n = x.shape[0]
            return x / torch.arange(n, 0, -1, dtype=x.dtype, device=x.device)
        """,
        Safety.UNSAFE,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def clipped(x: torch.Tensor, low):
            return torch.where(x > low, x, torch.tensor([low], device=x.device))  # !
        """,
        """
        import torch

        def clipped(x: torch.Tensor, low):
            return torch.where(x > low, x, torch.full((1,), low, device=x.device))
        """,
        Safety.UNSAFE,
        "x: finite[n]; low: number",
    ),
    Example(
        """
        import math
        import torch

        def forward(x: torch.Tensor):
            worst = torch.tensor(-float("inf"), device=x.device)  # !
            return torch.maximum(torch.maximum(worst, x), torch.tensor(math.pi, device=x.device))  # !
        """,
        """
        import math
        import torch

        def forward(x: torch.Tensor):
            worst = torch.full((), -float("inf"), device=x.device)
            return torch.maximum(torch.maximum(worst, x), torch.full((), math.pi, device=x.device))
        """,
        Safety.SAFE,
        "x: float[n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return torch.maximum(x, torch.tensor(0.5, device=x.device))  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            return torch.maximum(x, torch.full((), 0.5, device=x.device))
        """,
        Safety.SAFE,
        "x: float[...]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return torch.tensor(-7, dtype=x.dtype, device=x.device) + torch.tensor(True, device=x.device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            return torch.full((), -7, dtype=x.dtype, device=x.device) + torch.ones((), device=x.device, dtype=torch.bool)
        """,
        Safety.SAFE,
        "x: float[...]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, kind: torch.dtype):
            total, count = torch.tensor(0.0, device=x.device, dtype=kind), torch.tensor(0, device=x.device)  # !
            return total + x.new_tensor(1), count, torch.tensor([0, 0], device=x.device, dtype=kind)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, kind: torch.dtype):
            total, count = torch.zeros((), device=x.device, dtype=kind), torch.zeros((), device=x.device, dtype=torch.long)
            return total + x.new_ones(()), count, torch.full((2,), 0, device=x.device, dtype=kind)
        """,
        Safety.SAFE,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, epoch: int):
            return torch.maximum(x, torch.tensor(epoch, device=x.device))  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, epoch: int):
            return torch.maximum(x, torch.full((), epoch, device=x.device))
        """,
        Safety.UNSAFE,
        "x: float[n]; epoch: count",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            floor = x.new_tensor(0.25)  # !
            return torch.maximum(x, floor), y.new_tensor(-2, dtype=torch.float64), torch.as_tensor(3, device=x.device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            floor = x.new_full((), 0.25)
            return torch.maximum(x, floor), y.new_full((), -2, dtype=torch.float64), torch.full((), 3, device=x.device)
        """,
        Safety.SAFE,
        "x: float[n]; y: int[n]",
    ),
    Example(
        """
        import torch

        def sample(x: torch.Tensor, steps: int):
            for step in range(steps):
                t = torch.tensor([step] * x.shape[0], device=x.device)  # !
                x = x - t
            return x
        """,
        """
        import torch

        def sample(x: torch.Tensor, steps: int):
            for step in range(steps):
                t = torch.full((x.shape[0],), step, device=x.device)
                x = x - t
            return x
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; steps: count",
    ),
    Example(
        """
        import torch

        WIDE = torch.complex128

        def forward(x: torch.Tensor):
            least = torch.tensor([1], device=x.device, dtype=torch.float32)  # !
            return torch.max(x.sum(), least), x.new_tensor([0.5, 0.5]), torch.tensor([[0, 0]], dtype=WIDE, device=x.device)  # !
        """,
        """
        import torch

        WIDE = torch.complex128

        def forward(x: torch.Tensor):
            least = torch.ones(1, device=x.device, dtype=torch.float32)
            return torch.max(x.sum(), least), x.new_full((2,), 0.5), torch.zeros((1, 2), dtype=WIDE, device=x.device)
        """,
        Safety.SAFE,
        "x: finite[n]",
    ),
)

OWN_DTYPE = "a number of numpy's gets torch's default dtype"
SCRIPTED = "TorchScript takes no requires_grad there"
FITS = "beyond 3.4e38 it is an error, no inf"


TITLE = "fill a tensor on the device"
MAKERS = ("torch.tensor", "torch.as_tensor")
SAID = ("device", "dtype", "requires_grad")  # what a call of either may name


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or any(k.arg not in SAID for k in call.keywords):
        return None
    for each in single(call.args[0]):
        if may_be_several(function, each):
            return function.declines(call, f"{function.file.quote(each)} may be several numbers, as other lines use it")
        if too_large(function, each):
            return function.declines(
                call, f"{function.file.quote(each)} is larger than a float32: filled, it is an error"
            )
    if seen(function, call.args[0], "[{c}] * {n}", "{n} * [{c}]") is not None:
        return of_equal_numbers(function, call)
    if (fix := of_range(function, call)) is not None:
        return fix
    if isinstance(call.func, ast.Attribute) and call.func.attr == "new_tensor":
        return new_full(site, function, call)
    return of_number(site, function, call) if function.dotted(call.func) in MAKERS else None


def of_number(site: Site, function: Function, call: ast.Call) -> Fix | None:
    """`torch.tensor(0.5, device=d)`, of one number or of a list of equal ones."""
    value, size = element(function, call.args[0])
    alike, surely = held_alike(site, function, call, value), is_number(function, value)
    fact, written = site.fact_of(value), function.constant(value)
    if not alike and not surely and fact.kind is not Value.SCALAR:
        return of_one(function, call, value) if size == "(1,)" else not_known(function, call, value)
    at_hand = isinstance(function.value(value), (ast.Attribute, ast.Subscript))  # kept by an object, whatever it is
    of_any = function.dotted(call.func) == "torch.as_tensor"  # which is called where tensors are given, too
    if of_any and not surely and ((at_hand and size == "()") or not (alike or written is not None)):
        return function.declines(call, f"{function.file.quote(value)} may be a tensor already, and need its gradient")
    if at_hand and not surely and size == "()":
        return kept_number(site, function, call, value)
    if alike:
        return filled(function, call, value, size)
    if surely or written is not None:
        return filled(function, call, value, size, FITS)
    must = (
        f"{function.file.text(value)} must be one number" if fact.confidence < 3 else ""
    )  # a parameter's default is one
    return filled(function, call, value, size, must, FITS if says_any(call) else OWN_DTYPE)


def held_alike(site: Site, function: Function, call: ast.Call, value: ast.expr) -> bool:
    """Whether a number is surely held by what is filled with it as by what is made of it, errors and all."""
    typed, written = says_any(call), calculated(function, value)
    if is_bool(value) or special(function, value):
        return True
    if written is not None and (abs(written) <= 127 or (not typed and abs(written) < 2**31)):
        return True  # what overflows a dtype is reported in other words
    if own_int(function, value) and (not typed or as_long(function, call)):
        return True
    return typed and is_whole(function, value) and site.fact_of(value).confidence == 3


def calculated(function: Function, value: ast.expr) -> int | float | None:
    """The number that is written out, or that such are divided or multiplied to: `1.0 / 4`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div | ast.Mult):
        return function.constant(value)
    left, right = calculated(function, value.left), calculated(function, value.right)
    if left is None or not right:
        return None
    return left / right if isinstance(value.op, ast.Div) else left * right


def is_number(function: Function, value: ast.expr) -> bool:
    """Whether a value that is not written out is surely one number of Python's, by what it is made of."""
    return special(function, value) or own_int(function, value)


def says_any(call: ast.Call) -> bool:
    """Whether a call names a dtype."""
    return any(k.arg == "dtype" for k in call.keywords)


def not_known(function: Function, call: ast.Call, value: ast.expr) -> Fix | None:
    """None, and that nothing says what a value is, where it might be a number."""
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    return function.declines(call, f"nothing says that {function.file.quote(value)} is one number")


def filled(function: Function, call: ast.Call, number: ast.expr, size: str, *changes: str) -> Fix:
    """The fix: safe where it changes nothing."""
    draft = Draft(function)
    new = filling(draft, call, number, size)
    learns = next((k.value for k in call.keywords if k.arg == "requires_grad"), None)
    if isinstance(learns, ast.Constant) and learns.value is False:  # as of what is filled without being told
        new = draft.dropped(new, "requires_grad")
    elif learns is not None:
        changes = (*changes, SCRIPTED)
    draft.replace(call, "{call}", call=new)
    return draft.fix(TITLE, Safety.UNSAFE if changes else Safety.SAFE, *changes)


def single(filled: ast.expr) -> list[ast.expr]:
    """What must be one number: the argument itself, and what stands in a list."""
    listed = [e for n in ast.walk(filled) if isinstance(n, ast.List) for e in n.elts if not isinstance(e, ast.List)]
    return [filled, *listed]


def of_equal_numbers(function: Function, call: ast.Call) -> Fix | None:
    """`torch.tensor([c] * n, device=d)`."""
    repeated = of_equals(function, call.args[0])
    if function.dotted(call.func) not in MAKERS or repeated is None:
        return None
    number, size = repeated
    musts = [] if function.constant(number) is not None else [f"{function.file.text(number)} must be a number"]
    if not says_any(call):
        musts.append("where there are none, the dtype is its own")
    return filled(function, call, number, size, *(musts or [FITS]))


def of_range(function: Function, call: ast.Call) -> Fix | None:
    """`torch.tensor(range(n), device=d)`, which is `torch.arange(n, device=d)`."""
    counted = of_a_range(function, call.args[0])
    if function.dotted(call.func) not in MAKERS or counted is None:
        return None
    draft, (*before, last) = Draft(function), counted.args
    draft.replace(
        call,
        "{made}",
        made=draft.call(call, {call.func: draft.part("torch.arange"), call.args[0]: last}, *before),
    )
    title = "count on the device"
    if as_long(function, call):
        return draft.fix(title, Safety.SAFE)
    if says_any(call):
        return draft.fix(title, Safety.UNSAFE, "in a dtype of few digits large numbers may be rounded otherwise")
    return draft.fix(title, Safety.UNSAFE, "an empty range is of whole numbers, too")


def kept_number(site: Site, function: Function, call: ast.Call, number: ast.expr) -> Fix | None:
    """`x.new_tensor(self.low)` of what an object keeps, where it is surely known as a number: `self.low: float`."""
    fact = site.fact_of(number)
    if fact.kind is not Value.SCALAR or fact.confidence < 2 or not isinstance(number, ast.Attribute):
        return not_known(function, call, number)
    return filled(function, call, number, "()", f"{function.file.text(number)} must be one number")


def of_one(function: Function, call: ast.Call, number: ast.expr) -> Fix | None:
    """`torch.tensor([self.c], device=d)`, of which nothing more is known than that it is one element."""
    if function.dotted(call.func) != "torch.tensor" or not isinstance(number, (ast.Name, ast.Attribute)):
        return None
    if function.fact(number).kind not in (Value.UNKNOWN, Value.SCALAR) or function.value(number) is not number:
        return None
    must = f"{function.file.text(number)} must be one number"
    return filled(function, call, number, "(1,)", must, "" if says_any(call) else OWN_DTYPE)


def new_full(site: Site, function: Function, call: ast.Call) -> Fix | None:
    """`x.new_tensor(0.0)`: its dtype and device are those of `x`, as are those of `x.new_full`."""
    value, size = element(function, call.args[0])
    written, other_layouts = function.constant(value), function.file.other_layouts
    told = is_bool(value) or written is not None or special(function, value)
    if not told and site.fact_of(value).kind is not Value.SCALAR:
        return not_known(function, call, value)
    if isinstance(function.value(value), (ast.Attribute, ast.Subscript)) and not special(function, value):
        return kept_number(site, function, call, value) if size == "()" and not other_layouts else None
    if other_layouts:
        of = function.file.text(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        dense = f"{of} must be dense: new_full keeps its layout, as new_tensor does not"
        return filled(function, call, value, size, dense)
    if is_bool(value) or is_number(function, value) or (written is not None and abs(written) <= 127):
        return filled(function, call, value, size)
    must = FITS if written is not None else f"{function.file.text(value)} must be a number of Python"
    return filled(function, call, value, size, must)
