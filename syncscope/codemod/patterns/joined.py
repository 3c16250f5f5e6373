"""Numbers of several tensors that are read as one: what joins them, what must hold then, and what they are called."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from typing import NamedTuple

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import FLOATS, by_float, by_int, number_read
from syncscope.codemod.proofs import one_device, real
from syncscope.codemod.whereabouts import apart
from syncscope.model.fact import Dtype, Value
from syncscope.model.finding import Safety

WORTH = 3  # reads that become one: of two, the second waits for little, for the first has emptied the queue
GAINS = 4  # numbers that are joined: three are read as fast one by one, once the first has waited (27 us each way on an H200)
STACK = "torch.stack"
KEEP_DTYPE = {"min", "max", "amin", "amax", "median"}
KEEP_COMPLEX = {"mean", "sum", "prod"}  # of complex numbers, too
MADE_REAL = {"std", "var", "norm"}
ONE_KIND = "all must be tensors of one dtype and live on one device"
_ALL_OF_ONE = "there must be at least one, and all must have one dtype and {} and live on one device"
NO_DIMENSIONS = _ALL_OF_ONE.format("no dimensions")
FEW = "of too few elements the error is a ValueError, no IndexError"
FLAT = "at most one dimension"
FLATTENED = ".flatten().tolist()"
"""How numbers are read of tensors with dimensions that hold one element each: `[a, b]` as of `.item()`, not `[[a, b]]`."""
ONE_ELEMENT = _ALL_OF_ONE.format(f"one element in {FLAT}")
FRACTIONS = re.compile(r"loss|mean|norm|err|std|var\b|grad|scale|reward|prob|dist|exp\b|/")
SAME = {"detach", "float", "double", "cpu", "squeeze", "clone"}  # what is not worth a word in a name
NOTED = {"log", "add_scalar", "log_metric", "report", "logkv", "record", "append_scalar"}  # log(name, number)


class Entries(NamedTuple):
    """`box[0]`, `box[2]` as a part of one tensor: `box[0:3:2]`."""

    base: ast.expr
    inside: str  # what stands in the brackets
    ndim: int  # of the tensor that they are entries of
    known: bool  # that it has so many dimensions


class Joined(NamedTuple):
    """Numbers that are read as one."""

    code: str  # what reads them, with a hole for each tensor, t0, t1, ..., or one for what all are entries of
    parts: dict[str, ast.expr]
    safety: Safety
    changes: tuple[str, ...]
    dense: bool = False  # it flattens what it joins, so that a reader looks twice

    def dense_in(self, draft: Draft) -> set[str]:
        """The code, as a draft writes it down, where it is dense."""
        return {draft.code(self.code, **self.parts)} if self.dense else set()


def joined(function: Function, reads: Sequence[ast.expr], named: Sequence[tuple[str, ast.expr]] = ()) -> Joined | None:
    """How reads are made as one, each tensor once, after them the tensors that `named` names; None where they cannot be."""
    every = {ast.unparse(t): t for read in reads if (t := number_read(function, read)) is not None}
    tensors = list(every.values())
    floats = [FLOATS] if any(by_float(function, read) for read in reads) else []
    tier = Safety.UNSAFE if len(every) + len(named) >= WORTH else Safety.SUGGEST
    if not named and (one := entries(function, tensors)) is not None:
        if any(caught(function, read) for read in reads):  # too few of them are an error of another kind
            return None
        many = "one dimension" if one.ndim == 1 else f"{one.ndim} dimensions"
        ranks = [f"{function.file.text(one.base)} must have {many}"] if not one.known else []
        return Joined(f"{{base}}[{one.inside}].tolist()", {"base": one.base}, Safety.UNSAFE, (FEW, *ranks, *floats))
    all_of_them = [*tensors, *(t for _, t in named)]
    join = joining(function, all_of_them)
    if join is None or apart(function, all_of_them) or function.file.own_tensors:
        return None
    parts = {f"t{i}": t for i, t in enumerate(tensors)}
    stack = ", ".join([*(f"{{{key}}}" for key in parts), *(name for name, _ in named)])
    code = f"{join}(({stack})){'.tolist()' if join == STACK else FLATTENED}"
    if not named and alike(function, reads):
        return Joined(code, parts, Safety.SAFE, ())
    if join == STACK:
        return Joined(code, parts, tier, (ONE_KIND, *floats))
    changes = (ONE_KIND, f"what is no number yet must have {FLAT}", *floats)
    return Joined(code, parts, tier, changes, dense=True)


def all_at_once(ndim: int | None) -> tuple[str, str, str]:
    """What joins tensors of one element and so many dimensions (None: unknown), what reads that, and what must hold."""
    if ndim == 0:
        return STACK, ".tolist()", NO_DIMENSIONS
    return "torch.hstack", ".tolist()" if ndim == 1 else FLATTENED, ONE_ELEMENT


def joining(function: Function, tensors: Sequence[ast.expr]) -> str | None:
    """What joins such numbers: `torch.stack`, or `torch.hstack` where one may have a dimension; None where neither can."""
    facts = [function.fact(t) for t in tensors]
    if any(f.ndim not in (0, None) for f in facts) or not may_mix({f.dtype for f in facts}):
        return None
    if any(f.dtype is Dtype.INT for f in facts) and not all(may_be_whole(function, t) for t in tensors):
        return None
    return STACK if all(f.ndim == 0 for f in facts) else "torch.hstack"


def entries(function: Function, tensors: Sequence[ast.expr]) -> Entries | None:
    """What all tensors are entries of, if they are: `box[0], box[1]`, `points[i, 0], points[i, 1]`, in even steps."""
    found: list[tuple[ast.expr, tuple[ast.expr, ...], int]] = []
    for tensor in tensors:
        match tensor:
            case ast.Subscript(value=base, slice=ast.Tuple(elts=[*rest, ast.Constant(value=int(at))])) if rest:
                pass
            case ast.Subscript(value=base, slice=ast.Constant(value=int(at))):
                rest = []
            case _:
                return None
        if isinstance(at, bool) or at < 0 or not all(_is_place(function, r) for r in rest):
            return None
        found.append((base, tuple(rest), at))
    if len({(ast.unparse(base), *map(ast.unparse, rest)) for base, rest, _ in found}) != 1 or len(found) < 2:
        return None
    base, before, first = found[0]
    places = [at for _, _, at in found]
    step, fact, ndim = places[1] - first, function.fact(base), len(before) + 1
    if step < 1 or places != list(range(first, places[-1] + 1, step)):
        return None
    if not fact.is_tensor or fact.ndim not in (ndim, None) or not function.pure(base):
        return None
    last = f"{first or ''}:{places[-1] + 1}" + (f":{step}" if step > 1 else "")
    index = ", ".join([*(function.file.text(r) for r in before), last])
    return Entries(base, index, ndim, fact.ndim == ndim and fact.confidence >= 2)


def _is_place(function: Function, index: ast.expr) -> bool:
    """Whether an index is surely a number of Python's, which takes one dimension away."""
    return function.constant(index) is not None or function.fact(index).kind is Value.SCALAR


def alike(function: Function, reads: Sequence[ast.expr]) -> bool:
    """Whether reads surely give the same numbers when they are made as one: of one device, and of one kind of number."""
    tensors = [t for read in reads if (t := number_read(function, read)) is not None]
    if joining(function, tensors) != STACK or any(by_float(function, r) or by_int(function, r) for r in reads):
        return False
    floats = {function.fact(t).dtype for t in tensors} == {Dtype.FLOAT}
    if floats and one_device(function, tensors) and all(real(function, t) for t in tensors):
        return True  # what is narrower is widened, which changes no number
    return of_one_tensor(function, tensors, floats)


def of_one_tensor(function: Function, tensors: list[ast.expr], floats: bool) -> bool:
    """Whether all are reductions of one tensor that keep its dtype: then stacking them changes nothing."""
    ops = [function.op(t) for t in tensors]
    bases = {op.base.id for op in ops if op is not None and isinstance(op.base, ast.Name)}
    if len(bases) != 1 or any(op is None or not isinstance(op.base, ast.Name) or op.args or op.keywords for op in ops):
        return False
    names = {op.name for op in ops if op is not None}
    if not floats or names & KEEP_DTYPE:  # which complex numbers do not have: then what is floating is real
        return names <= (KEEP_DTYPE | KEEP_COMPLEX | MADE_REAL if floats else KEEP_DTYPE)
    return names <= KEEP_COMPLEX or names <= MADE_REAL


def may_mix(dtypes: set[Dtype]) -> bool:
    """Whether numbers of these dtypes can go through one tensor: not bool, which would come back as 0 and 1."""
    return dtypes <= {Dtype.FLOAT, Dtype.UNKNOWN} or dtypes <= {Dtype.INT, Dtype.UNKNOWN}


def may_be_whole(function: Function, tensor: ast.expr) -> bool:
    """Whether a number of unknown dtype may be a count: it is called no loss, and made by nothing that gives fractions.

    Beside a loss a count comes back as a float, and rounded where it is larger than 2**24.
    """
    return function.fact(tensor).dtype is not Dtype.UNKNOWN or FRACTIONS.search(ast.unparse(tensor)) is None


def once_each(function: Function, reads: Sequence[ast.expr]) -> list[ast.expr]:
    """The first read of each tensor."""
    first: dict[str, ast.expr] = {}
    for read in reads:
        first.setdefault(ast.unparse(number_read(function, read) or read), read)
    return list(first.values())


def names_for(function: Function, reads: Sequence[ast.expr]) -> list[str]:
    """New names for the numbers that are read: as the tensor is called, else as the code that takes them calls them, else
    as what makes them: `loss_value` of `loss`, `worst_value` of `{"worst": x.max().item()}`, `max_value` of `x.max()`. Where
    several are called alike there, more is said of each: `length_mean`, `reward_mean` of "length/mean" and "reward/mean".
    """
    tensors = [number_read(function, read) or read for read in reads]
    words = [
        _word(function, tensor, alone=True) if isinstance(tensor, ast.Name) else taken_as(function, read) or ""
        for tensor, read in zip(tensors, reads, strict=True)
    ]
    words = [w or _word(function, t, alone=True) for w, t in zip(words, tensors, strict=True)]
    longer = [taken_as(function, read, whole=True) or "" for read in reads]
    names: list[str] = []
    for tensor, word, long in zip(tensors, words, longer, strict=True):
        wish = f"{word}_value" if words.count(word) == 1 else _word(function, tensor, alone=False)
        if words.count(word) > 1 and longer.count(long) == 1 and function.fresh(long or wish, names) == long:
            wish = long
        if isinstance(tensor, ast.Subscript) and words.count(word) == 1:
            wish = word if function.fresh(word, names) == word else wish  # box_0
        wish = wish.strip("_") or "value"
        if function.fresh(wish, names) != wish:  # `target_q_value` of `target_q_value.mean().item()`
            wish = f"{wish}_item"
        names.append(function.fresh(wish, names))
    return names


def taken_as(function: Function, read: ast.expr, whole: bool = False) -> str | None:
    """What the code around calls a number: the key of an entry, a keyword, the first argument of `log(name, number)`; of
    "length/mean" the last part, or the `whole`.
    """
    inner: ast.AST = read
    name: str | None = None
    for outer in function.around(read):
        match outer:
            case ast.keyword(arg=str(word)):
                name = word
            case ast.Dict(keys=keys, values=values) if inner in values:
                name = _text(keys[values.index(inner)])
            case ast.Assign(targets=[ast.Subscript(slice=key)]):
                name = _text(key)
            case ast.Call(func=ast.Attribute(value=ast.Subscript(slice=key), attr="append")):
                name = _text(key)
            case ast.Call(func=ast.Attribute(attr=method), args=[first, *others], keywords=named) if first is not inner:
                name = _text(first) if method in NOTED or (len(others) == 1 and not named) else None
        if name is not None or not isinstance(outer, (ast.BinOp, ast.Call, ast.keyword)):
            break
        inner = outer
    if not name:
        return None
    word = re.sub(r"[\W_]+", "_", name if whole else name.rpartition("/")[2]).strip("_").lower()
    if word and not word.isidentifier():  # '1px' of epe: epe_1px
        roots = [n.id for n in ast.walk(read) if isinstance(n, ast.Name) and function.fact(n).is_tensor]
        word = f"{roots[0]}_{word}" if roots else ""
    word = word.removesuffix("_value")
    return word if 0 < len(word) <= (40 if whole else 24) and word.isascii() and not keyword.iskeyword(word) else None


def _text(node: ast.expr | None) -> str | None:
    """A text, also what stands in one that is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "_".join(filter(None, (_text(part) for part in parts)))
    return None


def _word(function: Function, tensor: ast.expr, alone: bool) -> str:
    """What a number is called: by the name of its tensor, or what makes it, with what it is made of where it is not alone."""
    match tensor, function.op(tensor):
        case ast.Name(id=name), _:
            return plain(name) if alone else f"{plain(name)}_value"
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=at), _:
            last = ast.unparse(at.elts[-1] if isinstance(at, ast.Tuple) else at)
            name = plain(name)
            return f"{name}_{re.sub(r'[^0-9A-Za-z]+', '_', last).strip('_')}" if len(last) <= 16 else name
        case ast.Attribute(attr=name), _:
            return plain(name)
        case ast.BinOp(left=left, right=right), None:
            return _word(function, left if function.fact(left).is_tensor else right, alone)
        case ast.UnaryOp(operand=operand), None:
            return _word(function, operand, alone)
        case _, op if op is not None and op.name in SAME:
            return _word(function, op.base, alone)
        case _, op if op is not None:
            if alone or not isinstance(op.base, ast.Name):
                return op.name if alone else f"{op.name}_value"
            return f"{op.base.id}_{op.name}"
    return ""


def plain(name: str) -> str:
    """What a tensor is called, without the word for one: of `sizes_tensor` numbers are read, which are none."""
    return name.removesuffix("_tensor") or name


def put_before(draft: Draft, statement: ast.stmt, names: Sequence[str], reading: Joined) -> None:
    """The statement that reads numbers and names them, before another."""
    draft.insert_before(statement, f"{', '.join(names)} = {reading.code}", **reading.parts)
    draft.dense |= reading.dense_in(draft)
