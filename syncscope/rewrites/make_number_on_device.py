"""`x[i] = 1.0` as `x.index_fill_(0, i, 1.0)`; at several indices `x.new_ones(())` is written, and one element is filled."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.masks import is_all
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.asked import may_be_several
from syncscope.codemod.patterns.index_parts import looked_for, maybe_mask, of_host, one_element, parts
from syncscope.codemod.patterns.numbers import named, new_number, too_large, written_out
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Fact, Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.model.ops import Op
from syncscope.project.syntax import each_of

COUNTED = ("torch.arange({n}, **_)", "torch.arange(0, {n}, **_)")
TOGETHER = True
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
    if site.op is Op.INDEX_HOST:
        return without_rows(site, function)
    match function.parent(site.node):
        case ast.Assign(targets=[ast.Subscript() as target], value=value) as assign:
            pass
        case _:
            return None
    if (
        target is not site.node
        or value is not site.operand
        or maybe_mask(target, site)
        or looked_for(function, target, site)
    ):
        return None
    code = filling_code(function, target)
    rows = code[2] if code is not None else None  # which are not made any more
    if any(of_host(function, part) for part in parts(target) if part is not rows):  # which is copied all the same
        return None
    if site.fact.confidence < 2:  # a guess is no ground to change code on; where the tensor lives changes no value
        return None
    draft = Draft(function)
    safety, changes = Safety.SAFE, ""
    if site.fact_of(value).kind is not Value.SCALAR:
        found = literal(function, value)
        if found is None:
            return None
        value, safety, changes = found, Safety.UNSAFE, "a tensor of another dtype is no longer an error"
    elif too_large(function, value):
        return None
    elif not written_out(function, value):
        if may_be_several(function, value):
            return None
        safety, changes = Safety.UNSAFE, f"{function.file.text(value)} must be a number of Python"
    if one_element(target, site):
        if not isinstance(target.value, ast.Name) and not function.pure(value):
            return None  # a call may put another tensor there, and is made before it is looked at
        if safety is Safety.SAFE and not fits(site, function, value):
            safety, changes = Safety.UNSAFE, "a number that the dtype cannot hold is reported in other words"
        if flags := [part for part in parts(target) if may_be_flag(site.fact_of(part), part)]:
            whole = f"{function.file.text(flags[0])} must be a whole number, not True or False"
            safety, changes = Safety.UNSAFE, "; ".join(filter(None, (whole, changes)))
        draft.replace(assign, "{x}.fill_({value})", x=target, value=value)
        if any(not told(function, other) for other in beside(function, assign, target)):
            safety, changes = Safety.SUGGEST, "elements that are written beside it are sent as before"
        return draft.fix("fill the element on the device", safety, changes)
    known = all(site.fact_of(part).dtype is not Dtype.UNKNOWN for part in parts(target))
    if code is not None and (len(parts(target)) > 1 or (known and may_be_one_row(function, code[1]))):
        template, index, _ = code
        draft.replace(assign, template, x=target.value, i=index, value=value)
        said = [
            *musts(function, target, index, rows),
            changes,
            "an index that is out of range is reported in other words",
        ]
        return draft.fix("fill at the positions on the device", Safety.UNSAFE, "; ".join(filter(None, said)))
    if not named(target.value):
        return None
    draft.replace(assign.value, "{number}", number=new_number(draft, target.value, value))
    return draft.fix("make the number on the device", safety, changes)


def without_rows(site: Site, function: Function) -> Fix | None:
    """The fix of the number that is written at an index of the host, where that goes, too: `x[torch.arange(len(i)), i] = 1`."""
    target, statement = site.node, function.statement(site.node)
    if not isinstance(target, ast.Subscript) or statement is None:
        return None
    code = filling_code(function, target)
    if code is None or code[2] is None or site.operand is None:
        return None
    if function.value(site.operand) is not counted(function, code[2]):
        return None
    written = (s for s in function.sites_in(statement) if s.op is Op.NUMBER_WRITE and s.node is target)
    return next((rewrite(each, function) for each in written), None)


def filling_code(function: Function, target: ast.Subscript) -> tuple[str, ast.expr, ast.expr | None] | None:
    """The call that fills at positions of one dimension, its index, and the rows that go with that; None for several."""
    found = each_of(target.slice)
    rows: ast.expr | None = None
    square = len(found) == 2 and function.fact(target.value).ndim in (None, 2)
    match [part for part in found if not is_all(part)]:
        case [index]:
            code = f"{{x}}.index_fill_({found.index(index)}, {{i}}, {{value}})"
        case [first, index] if square and counted(function, first):
            rows, code = first, "{x}.scatter_(1, {i}[:, None], {value})"
        case [index, last] if square and is_counted_by(function, last, index):
            rows, code = last, "{x}.scatter_(0, {i}[None], {value})"
        case [*rows_before, index] if (
            rows_before
            and found[: len(rows_before)] == rows_before
            and all(function.fact(row).kind is Value.SCALAR for row in rows_before)
            and all(named(row) or isinstance(row, ast.Constant) for row in rows_before)
            and not any(may_be_flag(function.fact(row), row) for row in rows_before)
        ):
            place = ", ".join(map(function.file.text, rows_before))
            code = f"{{x}}[{place}].index_fill_({found.index(index) - len(rows_before)}, {{i}}, {{value}})"
        case _:
            return None
    fact = function.fact(index)
    return (code, index, rows) if fact.is_tensor and fact.ndim in (None, 1, 0 if rows is None else 1) else None


def may_be_one_row(function: Function, index: ast.expr) -> bool:
    """Whether positions have one dimension, or are called by a name: what is computed may well have more."""
    return isinstance(index, ast.Name) or function.fact(index).ndim is not None


def counted(function: Function, rows: ast.expr) -> ast.expr | None:
    """The call that counts rows from 0: `torch.arange(n)`."""
    made = function.value(rows)
    return made if seen(function, made, *COUNTED) is not None else None


def is_counted_by(function: Function, rows: ast.expr, index: ast.expr) -> bool:
    """Whether rows are counted by those of an index, which then has one dimension: `torch.arange(len(i))`."""
    made = seen(function, counted(function, rows), *COUNTED)
    sized = (
        seen(function, function.value(made["n"]), "len({i})", "{i}.shape[0]", "{i}.size(0)", "{i}.numel()")
        if made is not None
        else None
    )
    return sized is not None and function.same(sized["i"], index)


def musts(function: Function, target: ast.Subscript, index: ast.expr, rows: ast.expr | None) -> list[str]:
    """What must hold of an index that fills, and of what is filled."""
    text, wanted = function.file.text(index), []
    if not is_long(function, index):
        wanted.append("be int64")
    if function.fact(index).ndim not in ((1,) if rows is not None else (0, 1)):
        wanted.append("have one dimension")
    if rows is not None:
        wanted.append("not be negative")
        if not is_counted_by(function, rows, index):
            wanted.append(f"be as long as {function.file.text(rows)}")
    found = [f"{text} must {' and '.join(wanted)}"] if wanted else []
    if rows is not None and function.fact(target.value).ndim is None:
        found.append(f"{function.file.text(target.value)} must have two dimensions")
    return found


def is_long(function: Function, index: ast.expr) -> bool:
    """Whether an index is surely of int64: `i.long()`, `x.argmax()`."""
    made = function.value(index)
    return (
        seen(function, made, "{x}.long()", "{x}.argmax(*_, **_)", "{x}.argsort(*_, **_)", "torch.randperm({n})")
        is not None
    )


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


def may_be_flag(fact: Fact, part: ast.expr) -> bool:
    """Whether a number of an index may be True or False, which selects all or nothing: a copy, in which nothing is kept."""
    return (
        fact.kind is Value.SCALAR and fact.dtype is not Dtype.INT and not isinstance(part, (ast.Constant, ast.UnaryOp))
    )


def fits(site: Site, function: Function, value: ast.expr) -> bool:
    """Whether every dtype holds it, or that of the tensor surely does: else a wrong index may hide that it does not."""
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return True
    number = function.constant(value)
    if number is None or -128 < number < 0:
        return site.fact.dtype is Dtype.FLOAT
    return 0 <= number < 128
