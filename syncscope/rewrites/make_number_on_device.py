"""`x[i] = 1.0` as `x.index_fill_(0, i, 1.0)`; at several indices `x.new_ones(())` is written, and one element is filled."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.index_elsewhere import handed_over, may_be_of_host
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.asked import may_be_several
from syncscope.codemod.patterns.fills import counted, filling_code, may_be_flag, may_be_one_row, musts
from syncscope.codemod.patterns.index_parts import looked_for, maybe_mask, of_host, one_element, parts
from syncscope.codemod.patterns.listed import TAKEN_OVER
from syncscope.codemod.patterns.numbers import named, new_number, too_large, written_out
from syncscope.codemod.templates import Part
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Drawback, Fix, Safety
from syncscope.model.ops import Op
from syncscope.project.syntax import each_of

TOGETHER = True
ROUNDS = True
SELECTS_APART = True
EXAMPLES = (
    Example(
        """
        import torch

        def corners(scores: torch.Tensor, count: int):
            kept = scores.new_zeros(scores.shape, dtype=torch.bool)
            for row in range(len(kept)):
                kept[row, scores[row].topk(count).indices] = True  # !
            return kept
        """,
        """
        import torch

        def corners(scores: torch.Tensor, count: int):
            kept = scores.new_zeros(scores.shape, dtype=torch.bool)
            for row in range(len(kept)):
                kept[row].index_fill_(0, scores[row].topk(count).indices, True)
            return kept
        """,
        Safety.UNSAFE,
        "scores: float[n + 1, 3]; count: count",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def targets(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            row = torch.arange(len(label), device=label.device)
            goal[row, label] = 1.0  # !
            return goal
        """,
        """
        import torch

        def targets(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            row = torch.arange(len(label), device=label.device)
            goal.scatter_(1, label[:, None], 1.0)
            return goal
        """,
        Safety.UNSAFE,
        "scores: float[n, 4]; label: index[n] < 4",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def smoothed(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.full_like(scores, 0.1)
            goal[range(len(label)), label] = 0.9  # !
            return goal
        """,
        """
        import torch

        def smoothed(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.full_like(scores, 0.1)
            goal.scatter_(1, label[:, None], 0.9)
            return goal
        """,
        Safety.UNSAFE,
        "scores: float[n, 4]; label: index[n] < 4",
        rule="list-as-index",
    ),
    Example(
        """
        import torch

        def one_hot(scores: torch.Tensor, labels):
            goal = torch.zeros(labels.size(0), 4, device=scores.device)
            goal[torch.arange(0, labels.size(0)), labels] = 1  # !
            return goal
        """,
        """
        import torch

        def one_hot(scores: torch.Tensor, labels):
            goal = torch.zeros(labels.size(0), 4, device=scores.device)
            goal.scatter_(1, labels[:, None], 1)
            return goal
        """,
        Safety.UNSAFE,
        "scores: float[n, 4]; labels: index[n] < 4",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, i: torch.LongTensor):
            x = x * 2
            x[i.flatten()] = -7  # !
            x[:, i.flatten()] = True  # !
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor, i: torch.LongTensor):
            x = x * 2
            x.index_fill_(0, i.flatten(), -7)
            x.index_fill_(1, i.flatten(), True)
            return x
        """,
        Safety.UNSAFE,
        "x: float[n + 5, 5]; i: index[m] < 5",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = torch.stack((x.flatten(), x.flatten()))
            x[0, -1] = 0.5  # !
            x[0] = 0
            x[:, 0] = 0
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = torch.stack((x.flatten(), x.flatten()))
            x[0, -1].fill_(0.5)
            x[0] = 0
            x[:, 0] = 0
            return x
        """,
        Safety.SAFE,
        "x: float[n, m]",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, i: torch.LongTensor, smooth: float):
            x = x.clone()
            x[i.flatten()] = torch.tensor(1.5)  # !
            x[i.flatten()] = smooth  # !
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor, i: torch.LongTensor, smooth: float):
            x = x.clone()
            x.index_fill_(0, i.flatten(), 1.5)
            x.index_fill_(0, i.flatten(), smooth)
            return x
        """,
        Safety.UNSAFE,
        "x: float[n + 5, 5]; i: index[m] < 5; smooth: number",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, i: torch.LongTensor, seen: torch.BoolTensor):
            x, seen = x * 2, seen.clone()
            x[i.flatten(), i.flatten()] = 0  # !
            seen[i.flatten(), i.flatten()] = True  # !
            return x, seen
        """,
        """
        import torch

        def forward(x: torch.Tensor, i: torch.LongTensor, seen: torch.BoolTensor):
            x, seen = x * 2, seen.clone()
            x[i.flatten(), i.flatten()] = x.new_zeros(())
            seen[i.flatten(), i.flatten()] = seen.new_ones(())
            return x, seen
        """,
        Safety.SAFE,
        "x: float[n + 5, 5]; i: index[m] < 5; seen: bool[n + 5, 5]",
        rule="number-at-positions",
    ),
    Example(
        """
        import torch

        def of_kinds(kinds: torch.LongTensor, count: int):
            kinds = kinds.cuda()
            found = torch.zeros(count, len(kinds), device=kinds.device)
            found[kinds, torch.arange(len(kinds))] = 1.0  # !
            return found
        """,
        """
        import torch

        def of_kinds(kinds: torch.LongTensor, count: int):
            kinds = kinds.cuda()
            found = torch.zeros(count, len(kinds), device=kinds.device)
            found.scatter_(0, kinds[None], 1.0)
            return found
        """,
        Safety.UNSAFE,
        rule="host-tensor-as-index",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.op in (Op.INDEX_HOST, Op.INDEX_LIST):
        return without_rows(site, function)
    match function.parent(site.node):
        case ast.Assign(targets=[ast.Subscript() as target], value=value) as assign:
            pass
        case _:
            return None
    if target is not site.node or value is not site.operand:
        return None
    if maybe_mask(target, site) or looked_for(function, target, site):
        return function.declines(target, "a mask may say where it is written: a number is filled there without waiting")
    code = filling_code(function, target)
    rows = code.rows if code is not None else None  # which are not made any more
    if any(of_host(function, part) for part in parts(target) if part is not rows):
        return function.declines(target, "its index is made on the host, and copied all the same")
    if site.fact.confidence < 2:  # a guess is no ground to change code on; where the tensor lives changes no value
        return function.declines(target, f"that {function.file.quote(target.value)} is a tensor is a guess")
    number = number_written(site, function, value)
    if isinstance(number, str):
        return function.declines(target, number)
    if one_element(target, site):
        return filled_element(site, function, assign, target, number)
    known = all(site.fact_of(part).dtype is not Dtype.UNKNOWN for part in parts(target))
    draft = Draft(function)
    if code is not None and (len(parts(target)) > 1 or (known and may_be_one_row(function, code.at))):
        draft.replace(assign, code.template, x=target.value, i=sent(draft, target, code.at), value=number.value)
        other_error = "an index that is out of range is reported in other words"
        said = [*musts(function, target, code), *where(site, function, target, code.at), number.changes, other_error]
        return draft.fix("fill at the positions on the device", Safety.UNSAFE, *said)
    if not named(target.value):
        return function.declines(target, f"{function.file.quote(target.value)} has no name: it would be computed twice")
    draft.replace(assign.value, "{number}", number=new_number(draft, target.value, number.value))
    return draft.fix("make the number on the device", number.safety, number.changes)


def sent(draft: Draft, target: ast.Subscript, index: ast.expr) -> ast.expr | Part:
    """The positions where what is written lives: an index of the host, which brackets take, is an error of what fills."""
    if not may_be_of_host(draft.function, index):
        return index
    draft.drawbacks.add(Drawback.UNPINNED)
    return draft.part("{i}.to({x}.device, non_blocking=True)", i=index, x=target.value)


def where(site: Site, function: Function, target: ast.Subscript, index: ast.expr) -> list[str]:
    """What is to be said of where the positions live."""
    text = function.file.text(index)
    if may_be_of_host(function, index):
        return [f"{text} must be a tensor, and is sent: {TAKEN_OVER}"]
    return (
        [f"{text} must live where {function.file.text(target.value)} does"]
        if handed_over(site, function) is index
        else []
    )


class Number(NamedTuple):
    """A number that is written, and on which terms it is one."""

    value: ast.expr
    safety: Safety
    changes: str = ""


def number_written(site: Site, function: Function, value: ast.expr) -> Number | str:
    """The number that a value is, or why it may be none."""
    if site.fact_of(value).kind is not Value.SCALAR:
        found = literal(function, value)
        if found is None:
            return f"nothing says that {function.file.quote(value)} is one number"
        return Number(found, Safety.UNSAFE, "a tensor of another dtype is no longer an error")
    if too_large(function, value):
        return f"{function.file.quote(value)} is larger than a float32: filled, it is an error"
    if written_out(function, value):
        return Number(value, Safety.SAFE)
    if may_be_several(function, value):
        return f"{function.file.quote(value)} may be several numbers, as other lines use it"
    return Number(value, Safety.UNSAFE, f"{function.file.text(value)} must be a number of Python")


def filled_element(
    site: Site, function: Function, assign: ast.Assign, target: ast.Subscript, number: Number
) -> Fix | None:
    """The fix for one element: `x[0, 1].fill_(value)`."""
    value, safety, changes = number.value, number.safety, [number.changes]
    if not isinstance(target.value, ast.Name) and not function.pure(value):
        return function.declines(target, "computing the number may put another tensor there")
    if safety is Safety.SAFE and not fits(site, function, value):
        safety, changes = Safety.UNSAFE, ["a number that the dtype cannot hold is reported in other words"]
    if flags := [part for part in parts(target) if may_be_flag(site.fact_of(part), part)]:
        whole = f"{function.file.text(flags[0])} must be a whole number, not True or False"
        safety, changes = Safety.UNSAFE, [whole, *changes]
    draft = Draft(function)
    draft.replace(assign, "{x}.fill_({value})", x=target, value=value)
    if any(not told(function, other) for other in beside(function, assign, target)):
        safety, changes = Safety.SUGGEST, ["elements that are written beside it are sent as before"]
    return replace(draft.fix("fill the element on the device", safety, *changes), fills=1)


def without_rows(site: Site, function: Function) -> Fix | None:
    """The fix of the number that is written at an index of the host, where that goes, too: `x[torch.arange(len(i)), i] = 1`."""
    target, statement = site.node, function.statement(site.node)
    if not isinstance(target, ast.Subscript) or statement is None:
        return None
    code = filling_code(function, target)
    if code is None or code.rows is None or site.operand is None:
        return None
    if function.value(site.operand) is not counted(function, code.rows):
        return None
    written = (s for s in function.sites_in(statement) if s.op is Op.NUMBER_WRITE and s.node is target)
    return next((rewrite(each, function) for each in written), None)


def beside(function: Function, assign: ast.Assign, target: ast.Subscript) -> list[ast.Assign]:
    """The other statements of a block that write a value to one element of the same tensor."""
    found = []
    for statement in function.block(assign):
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=base, slice=index)]) if (
                statement is not assign
                and function.same_name(base, target.value)
                and all(isinstance(part, ast.Constant) for part in each_of(index))
                and function.fact(base).ndim in (None, len(each_of(index)))  # a row is filled without waiting
            ):
                found.append(statement)
    return found


def told(function: Function, assign: ast.Assign) -> bool:
    """Whether a write is among what is told, or writes what is computed on the device."""
    return bool(function.sites_in(assign)) or function.fact(assign.value).is_tensor


def literal(function: Function, value: ast.expr) -> ast.expr | None:
    """The number of `torch.tensor(1.0)`, written out and without a dtype."""
    made = seen(function, function.value(value), "torch.tensor({number})", "torch.as_tensor({number})")
    return made["number"] if made is not None and written_out(function, made["number"]) else None


def fits(site: Site, function: Function, value: ast.expr) -> bool:
    """Whether every dtype holds it, or that of the tensor surely does: else a wrong index may hide that it does not."""
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return True
    number = function.constant(value)
    if number is None or -128 < number < 0:
        return site.fact.dtype is Dtype.FLOAT
    return 0 <= number < 128
