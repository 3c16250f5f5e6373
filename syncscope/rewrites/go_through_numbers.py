"""`for t in ts: use(t.item())` goes through `ts.tolist()`: a loop that reads each element of a tensor reads all at once."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Sequence
from typing import TypeGuard

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import asked_for_kinds, mixed
from syncscope.codemod.patterns.asked import may_be_none
from syncscope.codemod.patterns.passes import Loop, bound_again, element_of, in_every_pass, loop_of
from syncscope.codemod.patterns.reads import as_listed, in_size, read_of
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety, Stays
from syncscope.model.ops import Op
from syncscope.project.syntax import walk

STAYS = Stays.FIRST
TOGETHER = True
BITS, LARGEST = 8, 13  # of a number that half precision and bfloat16 both hold, and its exponent
EXAMPLES = (
    Example(
        """
        import torch

        def chosen(x: torch.Tensor, labels: torch.Tensor):
            kinds = labels.flatten().abs().long()
            return [x[: kind.item()].sum() for kind in kinds]  # !
        """,
        """
        import torch

        def chosen(x: torch.Tensor, labels: torch.Tensor):
            kinds = labels.flatten().abs().long()
            return [x[:kind].sum() for kind in kinds.tolist()]
        """,
        Safety.SAFE,
        "x: finite[n]; labels: label[m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def spread(x: torch.Tensor, lengths: torch.LongTensor):
            parts = []
            for i, length in enumerate(lengths):
                if i:
                    parts.append(x[: int(length)] * float(length))  # !
            return parts
        """,
        """
        import torch

        def spread(x: torch.Tensor, lengths: torch.LongTensor):
            parts = []
            for i, length in enumerate(lengths.tolist()):
                if i:
                    parts.append(x[:length] * float(length))
            return parts
        """,
        Safety.UNSAFE,
        "x: finite[n]; lengths: int[m]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def cut(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten().clamp(min=1)
            for i, length in enumerate(lengths):
                x[i, length - 1 :] = 0.0  # !
            return x
        """,
        """
        import torch

        def cut(x: torch.Tensor, lengths: torch.LongTensor):
            lengths = lengths.flatten().clamp(min=1)
            for i, length in enumerate(lengths.tolist()):
                x[i, length - 1 :] = 0.0
            return x
        """,
        Safety.SAFE,
        "x: finite[4, n]; lengths: index[4] < n",
        rule="tensor-as-size",
    ),
    Example(
        """
        import torch

        IGNORE = 2

        def places(target: torch.LongTensor):
            found = []
            for c in target.unique():
                if c == IGNORE:  # !
                    continue
                ys, xs = torch.where(target == c)
                found.append((int(c), f"class {c}", ys, xs))
            return found
        """,
        """
        import torch

        IGNORE = 2

        def places(target: torch.LongTensor):
            found = []
            for c in target.unique().tolist():
                if c == IGNORE:
                    continue
                ys, xs = torch.where(target == c)
                found.append((c, f"class {c}", ys, xs))
            return found
        """,
        Safety.SAFE,
        "target: int[n, m]",
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def kept(target: torch.Tensor, scores: torch.Tensor):
            found = []
            for b in range(len(target)):
                for c in torch.unique(target[b]):
                    if c not in (0, 255) and scores.shape[0] > 1:  # !
                        found.append(scores[target[b] == c].mean())
            return found
        """,
        """
        import torch

        def kept(target: torch.Tensor, scores: torch.Tensor):
            found = []
            for b in range(len(target)):
                for c in torch.unique(target[b]).tolist():
                    if c not in (0, 255) and scores.shape[0] > 1:
                        found.append(scores[target[b] == c].mean())
            return found
        """,
        Safety.UNSAFE,
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def scaled(x: torch.Tensor, labels: torch.LongTensor):
            parts = []
            for label in labels.unique():
                if label == 0:  # !
                    continue
                parts.append(x * label.sqrt())
            return parts
        """,
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def corners(x: torch.Tensor, grid: torch.LongTensor):
            return [[x[int(k) :].sum() for k in at] for at in grid]  # !
        """,
        """
        import torch

        def corners(x: torch.Tensor, grid: torch.LongTensor):
            return [[x[k :].sum() for k in at.flatten().tolist()] for at in grid]
        """,
        Safety.UNSAFE,
        "x: finite[n]; grid: index[m, k, 1] < n",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, taus: list[torch.Tensor]):
            for tau in taus:
                x = x * float(tau.sum() + x.sum())  # !
            return x
        """,
        rule="host-read",
    ),
    Example(
        """
        import torch

        def named(tokens: torch.Tensor):
            names = tokens.flatten().long()
            return tuple(name.item() for name in names), sum((name.item() for name in names))  # !
        """,
        """
        import torch

        def named(tokens: torch.Tensor):
            names = tokens.flatten().long()
            return tuple(names.tolist()), sum(names.tolist())
        """,
        Safety.SAFE,
        "tokens: label[n]",
        rule="host-read",
    ),
)
ORDERED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def rewrite(site: Site, function: Function) -> Fix | None:
    element = element_read(site, function)
    found = loop_of(function, element) if element is not None else None
    tensor = element_of(function, found[1], found[2], element.id) if element is not None and found is not None else None
    if element is None or found is None or tensor is None:
        return None
    loop, name = found[0], element.id
    inside = set(map(id, walk(loop)))  # looked at first: many loops of a function may go by one name
    uses = [use for use in function.reads(name) if id(use) in inside and loop_of(function, use) == found]
    reads = [read_of(function, use) or as_number(function, use) for use in uses]
    known, last = [each for each in reads if each is not None], uses[-1]
    compared = any(isinstance(whole, (ast.Compare, ast.FormattedValue)) for _, whole in known)
    kept = names_of(function, tensor)
    if why := (
        _bound_elsewhere(function, loop, name)
        or _no_vector(function, tensor, loop, compared)
        or _with_a_float(function, tensor, known, name)
        or _used_as_tensor(name, uses, reads)
        or _changed(function, kept, loop, last)
    ):
        return function.declines(site.node, why)
    draft = Draft(function)
    nested = may_hold_rows(function, tensor)
    numbers = "{t}.flatten().tolist()" if nested else "{t}.tolist()"
    if only_reads(loop, reads, tensor):  # [t.item() for t in ts]
        draft.replace(loop, numbers, t=tensor)
    else:
        draft.replace(tensor, numbers, t=tensor)
        for _, whole in known:
            if not isinstance(whole, (ast.Name, ast.Compare, ast.FormattedValue)):  # a name it may be in `int(t)`
                draft.replace(whole, name)
    text, fact = function.file.text(tensor), function.fact(tensor)
    shape = "hold one number for each pass" if nested else "have one dimension"
    changes = [f"{text} must {shape}"] * (fact.ndim is None)
    asked = [other for each in known if (other := compared_with(each, name)) is not None]
    if (
        compared
        and fact.dtype is Dtype.UNKNOWN
        and not (asked and all(same_in_every_dtype(function, each) for each in asked))
    ):
        changes.append(f"{text} must hold whole numbers")
    if any(exposed(function, each, loop, last) for each in kept):
        changes.append(f"nothing may write what {text} holds in the loop")
    shorter = tensor is not found[2] and function.dotted(getattr(found[2], "func", found[2])) == "zip"  # than others
    if shorter or not any(every_time(function, whole, loop) for _, whole in known):
        changes.append("it waits once, also where no pass reads")
    return draft.fix("read all at once", Safety.UNSAFE if changes else Safety.SAFE, *changes)


def element_read(site: Site, function: Function) -> ast.Name | None:
    """The name whose number is read: of one element of what a loop goes through."""
    read = as_listed(function, site.node)
    element = read[0] if read is not None else in_size(function, site) or asked_of(function, site)
    return element if isinstance(element, ast.Name) and not function.captured(element.id) else None


def may_hold_rows(function: Function, tensor: ast.expr) -> bool:
    """Whether what is gone through is itself one of what another loop goes through, whose dimensions nobody knows: `int(t)`
    reads rows of one element, too, and `tolist` gives those as lists.
    """
    return function.fact(tensor).ndim is None and isinstance(tensor, ast.Name) and loop_of(function, tensor) is not None


def names_of(function: Function, tensor: ast.expr) -> set[str]:
    """The names on which a tensor hangs; none where nobody else has its memory."""
    op = function.op(tensor)
    own = op is not None and op.name in ("unique", "unique_consecutive")
    return set() if own else {each.id for each in walk(tensor) if isinstance(each, ast.Name)}


def _bound_elsewhere(function: Function, loop: Loop, name: str) -> str:
    return f"`{name}` is bound again in the loop" if bound_again(function, loop, name) else ""


def _no_vector(function: Function, tensor: ast.expr, loop: Loop, compared: bool) -> str:
    """Why what is gone through may be anything but a tensor of one dimension, whose numbers Python has alike."""
    fact, quoted = function.fact(tensor), function.file.quote(tensor)
    statement = function.statement(loop)
    if statement is None or (isinstance(tensor, ast.Name) and may_be_none(function, tensor, statement)):
        return f"{quoted} may be None"
    if fact.confidence < 2 or not fact.is_tensor or mixed(function, tensor) or asked_for_kinds(function, tensor):
        return f"that {quoted} is one tensor is a guess"
    if fact.ndim not in (1, None):
        return f"{quoted} has {fact.ndim} dimensions"
    if compared and fact.dtype not in (Dtype.INT, Dtype.UNKNOWN):
        return "it is compared, and 0.1 is another number in float32"
    return ""


def _with_a_float(function: Function, tensor: ast.expr, known: Sequence[tuple[ast.expr, ast.expr]], name: str) -> str:
    """Why the numbers may compare otherwise than their tensors: those are compared in their own dtype, Python's in 64 bits."""
    if function.fact(tensor).dtype is Dtype.INT:
        return ""
    for each in known:
        other = compared_with(each, name)
        if (
            other is not None
            and not same_in_every_dtype(function, other)
            and not may_be_whole(function, each[1], other)
        ):
            return f"it is compared with {function.file.quote(other)}, and 0.7 is another number in float32"
    return ""


def compared_with(known: tuple[ast.expr, ast.expr], name: str) -> ast.expr | None:
    """What a number is compared with, if it is."""
    match known[1]:
        case ast.Compare(left=ast.Name(id=left), comparators=[right]) if left == name:
            return right
        case ast.Compare(left=left):
            return left
    return None


def same_in_every_dtype(function: Function, other: ast.expr) -> bool:
    """Whether this is a number that every floating dtype holds as it is: 0, 255, 0.5, not 0.7; or several of them."""
    if isinstance(other, (ast.List, ast.Tuple)):
        return all(same_in_every_dtype(function, each) for each in other.elts)
    number = function.constant(other)
    if number is None:
        return False
    part, exponent = math.frexp(number)
    return (part * 2**BITS).is_integer() and -LARGEST < exponent <= LARGEST


def may_be_whole(function: Function, compared: ast.expr, other: ast.expr) -> bool:
    """Whether what a number is compared with is whole, or may well be: classes are asked whether they are equal."""
    fact = function.fact(other)
    if isinstance(other, (ast.List, ast.Tuple)):
        return all(may_be_whole(function, compared, each) for each in other.elts)
    if (number := function.constant(other)) is not None:
        return not isinstance(number, float)
    equal = isinstance(compared, ast.Compare) and not isinstance(compared.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    return fact.dtype in (Dtype.INT, Dtype.BOOL) or (fact.dtype is Dtype.UNKNOWN and (equal or fact.is_tensor))


def _used_as_tensor(name: str, uses: Sequence[ast.Name], reads: Sequence[tuple[ast.expr, ast.expr] | None]) -> str:
    used = next((use for use, read in zip(uses, reads, strict=True) if read is None), None)
    return f"line {used.lineno} takes `{name}` as a tensor" if used is not None else ""


def _changed(function: Function, names: Collection[str], loop: Loop, last: ast.Name) -> str:
    changed = next((each for each in sorted(names) if disturbed(function, each, loop, last, within=True)), None)
    return f"`{changed}` may be written in the loop" if changed is not None else ""


def only_reads(loop: Loop, reads: Sequence[tuple[ast.expr, ast.expr] | None], tensor: ast.expr) -> TypeGuard[ast.expr]:
    """Whether a comprehension gives what is read and nothing else: then the list of numbers is all of it."""
    if not isinstance(loop, (ast.ListComp, ast.GeneratorExp)) or loop.generators[0].ifs:
        return False
    return len(reads) == 1 and reads[0] is not None and loop.elt is reads[0][1] and loop.generators[0].iter is tensor


def asked_of(function: Function, site: Site) -> ast.expr | None:
    """The name whose value a condition compares: the c of `if c == 255`."""
    asked = site.operand if site.op is Op.CONDITION and isinstance(site.operand, ast.Compare) else site.node
    if site.op is not Op.CONDITION or not isinstance(asked, ast.Compare):
        return None
    tensors = [n for n in (asked.left, *asked.comparators) if function.fact(n).is_tensor]
    alone = len(tensors) == 1 and isinstance(tensors[0], ast.Name)  # with another one the host waits all the same
    return tensors[0] if alone else None


def every_time(function: Function, read: ast.expr, loop: Loop) -> bool:
    """Whether a number is surely read in every pass: by a comparison only where that alone decides an `if`."""
    outer = function.parent(read)
    if isinstance(read, ast.Compare):
        return isinstance(outer, ast.If) and outer.test is read and in_every_pass(function, outer, loop)
    return in_every_pass(function, read, loop)


def as_number(function: Function, use: ast.Name) -> tuple[ast.expr, ast.expr] | None:
    """The comparison or the part of an f-string that a whole number of Python's does as well for as a tensor of one number:
    a comparison with a tensor gives the same mask, and a condition asks for its truth alone.
    """
    match outer := function.parent(use):
        case ast.FormattedValue(conversion=-1):
            return use, outer
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            other = right if left is use else left
            listed = isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple))
            if not isinstance(op, ORDERED) and not (listed and left is use):
                return None
            with_tensor = isinstance(op, ORDERED) and function.fact(other).is_tensor
            return (use, outer) if with_tensor or in_condition(function, outer) else None
    return None


def in_condition(function: Function, node: ast.expr) -> bool:
    """Whether only the truth of an expression is asked for, by an `if` or the like."""
    inner: ast.AST = node
    for outer in function.around(node):
        match outer:
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                inner = outer
            case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
                return outer.test is inner
            case ast.comprehension():
                return inner in outer.ifs
            case _:
                return False
    return False
