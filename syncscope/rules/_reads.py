"""Reads of single numbers: not made, made later, or made together."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function
from syncscope.rules.unique import simple

KEEP_DTYPE = {"min", "max", "amin", "amax", "median"}
KEEP_FLOAT = {*KEEP_DTYPE, "mean", "std", "var", "sum", "prod", "norm"}
PLAIN_SPEC = re.compile(r"|[ +<>^]?\d*(\.\d+[efg])")  # of a number; an int takes these too
LOGGING = {
    "print",
    "log",
    "info",
    "debug",
    "write",
    "add_scalar",
    "log_metric",
    "log_metrics",
    "set_postfix",
    "set_description",
}
SIMPLE = (ast.Expr, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign)
ONE_KIND = "all must be of one dtype and live on one device"
TOGETHER = "there must be at least one, and all must have one dtype and no dimensions and live on one device"
STAYS = "it is a tensor that stays on the device, no Python number: what needs a number will read it"


def tensor_read(node: ast.AST | None, function: Function) -> ast.expr | None:
    """The tensor t of `t.item()` or `float(t)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    if len(node.args) == 1 and function.dotted(node.func) == "float":
        return node.args[0]
    return None


def accumulated(site: Site, function: Function) -> Fix | None:
    """`total += loss.item()` in a loop: the total stays on the device until the loop is over."""
    tensor, add, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    factor: ast.expr | None = None
    if isinstance(add, ast.BinOp) and isinstance(add.op, ast.Mult):
        factor = add.right if add.left is site.node else add.left
        add = function.parent(add)
    if (
        tensor is None
        or loop is None
        or not isinstance(add, ast.AugAssign)
        or not isinstance(add.op, ast.Add)
        or not isinstance(add.target, ast.Name)
        or (factor is not None and (function.fact(factor).is_tensor or not function.pure(factor)))
    ):
        return None
    total = add.target.id
    starts = [function.constant(s.value) for s in assigned(function, total)]
    others = [n for n in function.binds(total) if n is not add.target]
    if len(starts) != len(others) or not starts or None in starts or function.shared(total):
        return None
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == total and isinstance(n.ctx, ast.Load)]
    if any(not guarded(function, n, loop) for n in inside):
        return None
    dtype = site.fact.dtype
    whole = dtype is Dtype.INT and all(isinstance(s, int) for s in starts) and factor is None
    if dtype is Dtype.BOOL or (dtype is not Dtype.FLOAT and not whole and any(isinstance(s, int) for s in starts)):
        return None
    number = "int" if whole else "float"
    draft = function.draft()
    wide = ".detach().long()" if whole else ".detach().double()"
    more = " * {factor}" if factor is not None else ""
    draft.replace(add, f"{total} = {total} + {{t}}{wide}{more}", t=tensor, factor=factor or "1")
    for name in inside:
        draft.replace(name, f"{number}({total})")
    draft.insert_after(loop, f"{total} = {number}({total})")
    return draft.fix(
        "add up on the device, read once after the loop",
        Safety.UNSAFE,
        f"{total} is a tensor inside the loop, in float64, which MPS has not; it holds one number a pass, as before",
    )


def assigned(function: Function, name: str) -> list[ast.Assign]:
    """The assignments to a name, alone or in a chain `a = b = 0.0`."""
    parents = (function.parent(n) for n in function.binds(name))
    return [p for p in parents if isinstance(p, ast.Assign)]


def guarded(function: Function, node: ast.AST, loop: ast.AST) -> bool:
    """Whether a node runs on some passes of a loop only: under an `if` in it."""
    child = node
    for n in function.around(node):
        if n is loop:
            return False
        if isinstance(n, ast.If) and (child in n.body or child in n.orelse):
            return True
        child = n
    return False


def only_where_logged(site: Site, function: Function) -> Fix | None:
    """`value = loss.item()` that is used under one `if` only is read there."""
    statement = function.statement(site.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, block = statement.targets[0], function.block(statement)
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    bound = [t.id for t in targets if isinstance(t, ast.Name)]
    reads = [n for name in bound for n in function.reads(name)]
    if len(bound) != len(targets) or not reads or any(len(function.binds(n)) != 1 or function.shared(n) for n in bound):
        return None
    later = block[block.index(statement) + 1 :]
    place = next((s for s in later if any(n in reads for n in ast.walk(s))), None)
    if not isinstance(place, ast.If) or isinstance(function.scope, ast.Module):
        return None
    body = {id(n) for s in place.body for n in ast.walk(s)}
    names = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    if (
        any(id(n) not in body for n in reads)
        or not function.pure(statement.value)
        or any(function.disturbed(n, statement, place.body[0]) for n in names)
        or any(function.fact(n).is_tensor for n in ast.walk(place.test) if isinstance(n, ast.expr))
    ):
        return None
    if not function.alone(statement) or not function.alone(place.body[0]):
        return None
    draft = function.draft()
    draft.remove(statement)
    draft.insert_before(place.body[0], f"{', '.join(bound)} = {{value}}", value=statement.value)
    title = f"read {' and '.join(bound)} only where used"
    if function.quiet(statement, place) and function.pure(place.test) and never_raises(statement.value, function):
        return draft.fix(title, Safety.SAFE)
    return draft.fix(
        title, Safety.UNSAFE, "it is read later: what stands between must not write what it is computed from"
    )


def never_raises(value: ast.expr, function: Function) -> bool:
    """Whether a read or a text surely works, so that nobody misses its error where it is not made."""
    tensor = tensor_read(value, function)
    if tensor is not None:
        return isinstance(tensor, ast.Name) and function.fact(tensor).ndim == 0
    if not isinstance(value, ast.JoinedStr):
        return False
    for part in value.values:
        if isinstance(part, ast.FormattedValue):
            spec = part.format_spec
            literal = (
                spec.values[0].value
                if isinstance(spec, ast.JoinedStr) and isinstance(spec.values[0], ast.Constant)
                else ""
            )
            fact = function.fact(part.value)
            read = tensor_read(part.value, function)
            if read is not None:
                fact = function.fact(read)
            number = (fact.is_tensor and fact.ndim == 0 and fact.dtype is Dtype.FLOAT) or fact.kind is Value.SCALAR
            if not isinstance(read or part.value, ast.Name) or not number or not PLAIN_SPEC.fullmatch(str(literal)):
                return False
    return True


def collected(site: Site, function: Function) -> Fix | None:
    """`history.append(loss.item())` in a loop: tensors are collected, and read together after it."""
    tensor, call, loop = tensor_read(site.node, function), function.parent(site.node), function.loop(site.node)
    if (
        tensor is None
        or loop is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "append"
        or not isinstance(call.func.value, ast.Name)
        or site.fact.ndim != 0
        or site.fact.dtype not in (Dtype.FLOAT, Dtype.INT)
    ):
        return None
    name = call.func.value.id
    made = [s for s in assigned(function, name) if isinstance(s.value, ast.List) and not s.value.elts]
    block = function.block(loop)
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name]
    if len(function.binds(name)) != 1 or len(made) != 1 or made[0] not in block or inside != [call.func.value]:
        return None
    between = [n for n in function.reads(name) if n.lineno < loop.lineno]
    if between or block.index(made[0]) > block.index(loop):
        return None
    draft = function.draft()
    draft.replace(site.node, "{t}.detach()", t=tensor) if isinstance(site.node, ast.expr) else None
    draft.insert_after(loop, f"{name} = torch.stack({name}).tolist() if {name} else []")
    return draft.fix(
        "collect on the device, read all after the loop",
        Safety.UNSAFE,
        f"{name} holds tensors inside the loop; they must all have one dtype and live on one device",
    )


def stacked(site: Site, function: Function) -> Fix | None:
    """`[t.item() for t in tensors]` reads them all at once."""
    loop = function.parent(site.node)
    tensor = tensor_read(site.node, function)
    if not isinstance(loop, ast.ListComp) or len(loop.generators) != 1 or loop.elt is not site.node:
        return None
    each = loop.generators[0]
    if each.ifs or each.is_async or not isinstance(tensor, ast.Name) or not function.same_name(tensor, each.target):
        return None
    draft = function.draft()
    draft.replace(loop, "torch.stack(tuple({all})).tolist()", all=each.iter)
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)


def stacked_values(site: Site, function: Function) -> Fix | None:
    """`{k: t.item() for k, t in d.items()}` reads them all at once."""
    loop, tensor = function.parent(site.node), tensor_read(site.node, function)
    if not isinstance(loop, ast.DictComp) or len(loop.generators) != 1 or loop.value is not site.node:
        return None
    each = loop.generators[0]
    items = each.iter
    if (
        each.ifs
        or each.is_async
        or not isinstance(each.target, ast.Tuple)
        or len(each.target.elts) != 2
        or not function.same_name(loop.key, each.target.elts[0])
        or tensor is None
        or not function.same_name(tensor, each.target.elts[1])
        or not isinstance(items, ast.Call)
        or not isinstance(items.func, ast.Attribute)
        or items.func.attr != "items"
        or not isinstance(items.func.value, ast.Name)
    ):
        return None
    draft = function.draft()
    draft.replace(loop, "dict(zip({d}, torch.stack(tuple({d}.values())).tolist()))", d=items.func.value)
    return draft.fix("read all at once", Safety.UNSAFE, TOGETHER)


def merged(site: Site, function: Function) -> Fix | None:
    """Reads side by side become one: `a, b = torch.stack((x, y)).tolist()`."""
    statement = function.statement(site.node)
    if not isinstance(statement, ast.Assign):
        return None
    pairs = reads_of(statement, function)
    run = [statement]
    if isinstance(statement.targets[0], ast.Name):
        block = function.block(statement)
        at = block.index(statement)
        first = last = at
        while first > 0 and reads_of(block[first - 1], function):
            first -= 1
        while last + 1 < len(block) and reads_of(block[last + 1], function):
            last += 1
        run = [s for s in block[first : last + 1] if isinstance(s, ast.Assign)]
        if any(isinstance(s.targets[0], ast.Tuple) for s in run):
            return None
        pairs = [pair for s in run for pair in reads_of(s, function)]
    names, tensors = [n for n, _ in pairs], [t for _, t in pairs]
    if len(pairs) < 2 or len({n.id for n in names}) < len(names):
        return None
    if any(isinstance(n, ast.Name) and n.id in {x.id for x in names} for t in tensors for n in ast.walk(t)):
        return None
    facts = [function.fact(t) for t in tensors]
    dtypes = {f.dtype for f in facts}
    one = of_one_tensor(tensors, function, dtypes == {Dtype.FLOAT})
    if any(f.ndim != 0 for f in facts) or not may_mix(dtypes):
        return None
    if not all(function.alone(s) for s in run):
        return None
    draft = function.draft()
    parts = {f"t{i}": t for i, t in enumerate(tensors)}
    stack = ", ".join(f"{{{key}}}" for key in parts)
    draft.replace(run[0], f"{', '.join(n.id for n in names)} = torch.stack(({stack})).tolist()", **parts)
    for other in run[1:]:
        draft.remove(other)
    if one:
        return draft.fix(f"read {len(names)} numbers at once", Safety.SAFE)
    return draft.fix(f"read {len(names)} numbers at once", Safety.UNSAFE, ONE_KIND)


def merged_in_statement(site: Site, function: Function) -> Fix | None:
    """`log(x.item(), y.item())`: the numbers of one statement, read together before it."""
    statement = function.statement(site.node)
    reads = [
        s.node
        for s in function.sites
        if isinstance(s.node, ast.Call)
        and tensor_read(s.node, function) is not None
        and function.statement(s.node) is statement
    ]
    if statement is None or len(reads) < 2 or site.node not in reads or not isinstance(statement, SIMPLE):
        return None
    tensors = [t for r in reads if (t := tensor_read(r, function)) is not None]
    facts = [function.fact(t) for t in tensors]
    dtypes = {f.dtype for f in facts}
    if (
        any(f.ndim != 0 for f in facts)
        or not may_mix(dtypes)
        or not all(simple(function, statement, r) and function.pure(r) for r in reads)
    ):
        return None
    names: list[str] = []
    for tensor in tensors:
        op = function.op(tensor)
        wish = tensor.id if isinstance(tensor, ast.Name) else op.name if op is not None else ""
        names.append(function.fresh(f"{wish}_value" if wish else "value", names))
    if function.indent(statement).strip():
        return None
    draft = function.draft()
    parts = {f"t{i}": t for i, t in enumerate(tensors)}
    stack = ", ".join(f"{{{key}}}" for key in parts)
    draft.insert_before(statement, f"{', '.join(names)} = torch.stack(({stack})).tolist()", **parts)
    for read, name in zip(reads, names, strict=True):
        draft.replace(read, name)
    return draft.fix(f"read {len(names)} numbers at once", Safety.UNSAFE, ONE_KIND)


def may_mix(dtypes: set[Dtype]) -> bool:
    """Whether numbers of these dtypes can go through one tensor: not bool, which would come back as 0 and 1."""
    return dtypes <= {Dtype.FLOAT, Dtype.UNKNOWN} or dtypes <= {Dtype.INT, Dtype.UNKNOWN}


def reads_of(statement: ast.stmt, function: Function) -> list[tuple[ast.Name, ast.expr]]:
    """Names and tensors of `a = t.item()` or `a, b = t.item(), u.item()`; empty for any other statement."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    targets: Sequence[ast.expr] = target.elts if isinstance(target, ast.Tuple) else [target]
    values: Sequence[ast.expr] = value.elts if isinstance(value, ast.Tuple) and len(targets) > 1 else [value]
    if len(targets) != len(values):
        return []
    found = []
    for name, one in zip(targets, values, strict=True):
        tensor = tensor_read(one, function)
        if (
            not isinstance(name, ast.Name)
            or tensor is None
            or not function.pure(tensor)
            or function.fact(one).is_tensor
        ):
            return []
        found.append((name, tensor))
    return found


def of_one_tensor(tensors: list[ast.expr], function: Function, floats: bool) -> bool:
    """Whether all are reductions of one tensor that keep its dtype: then stacking them changes nothing."""
    ops = [function.op(t) for t in tensors]
    bases = {op.base.id for op in ops if op is not None and isinstance(op.base, ast.Name)}
    kept = KEEP_FLOAT if floats else KEEP_DTYPE
    return len(bases) == 1 and all(
        op is not None and isinstance(op.base, ast.Name) and op.name in kept and not op.args and not op.keywords
        for op in ops
    )


def clamped(site: Site, function: Function) -> Fix | None:
    """`max(t.item(), 1)` as `t.clamp(min=1)`, directly or with the number named in between."""
    tensor, read = tensor_read(site.node, function), site.node
    if tensor is None or not isinstance(read, ast.Call):
        return None
    used: ast.expr = read
    statement = function.parent(read)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and len(statement.targets) == 1:
        reads = function.reads(statement.targets[0].id)
        if len(reads) != 1 or function.definition(reads[0]) is not statement:
            return None
        used = reads[0]
    call = function.parent(used)
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    which = function.dotted(call.func)
    other = call.args[1] if call.args[0] is used else call.args[0]
    if which not in ("max", "min") or function.constant(other) is None:
        return None
    bound = "min" if which == "max" else "max"
    cut = "" if site.fact.dtype in (Dtype.INT, Dtype.BOOL) else ".detach()"  # as the number was
    draft = function.draft()
    if used is read:
        draft.replace(call, f"{{t}}{cut}.clamp({bound}={{c}})", t=tensor, c=other)
    else:
        draft.replace(read, f"{{t}}{cut}", t=tensor)
        draft.replace(call, f"{{t}}.clamp({bound}={{c}})", t=used, c=other)
    return draft.fix("keep it on the device, and clamp", Safety.UNSAFE, STAYS)


def checked_later(site: Site, function: Function) -> Fix | None:
    """`if not math.isfinite(loss.item()): raise` as a check on the device."""
    tensor, asked = tensor_read(site.node, function), function.parent(site.node)
    if tensor is None or not isinstance(asked, ast.Call) or asked.args != [site.node]:
        return None
    name = (function.dotted(asked.func) or "").removeprefix("math.").removeprefix("numpy.")
    test = function.parent(asked)
    wrong = not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    statement = function.statement(asked)
    if (
        name not in ("isfinite", "isnan", "isinf")
        or wrong is (name == "isfinite")
        or not isinstance(statement, ast.If)
        or statement.test is not (asked if wrong else test)
        or statement.orelse
        or not isinstance(statement.body[-1], ast.Raise)
        or len(statement.body) != 1
    ):
        return None
    draft = function.draft()
    good = f"{'~' if wrong else ''}torch.{name}({{t}})"
    draft.replace(statement, f"torch._assert_async({good}, {{said}})", t=tensor, said=repr(function.view.text(asked)))
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        "the error is a RuntimeError that comes later, after further steps were asked for; on CUDA the device is then lost",
    )


def logged_rarely(site: Site, function: Function) -> Fix | None:
    """`print(i, loss.item())` on every pass of `for i, x in enumerate(loader)`: on some passes only."""
    statement = function.statement(site.node)
    loop = function.loop(statement) if statement is not None else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    word = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    step = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    if word not in LOGGING or function.dotted(loop.iter.func) != "enumerate" or not isinstance(step, ast.Name):
        return None
    if statement is None or not function.alone(statement) or guarded(function, statement, loop):
        return None
    draft = function.draft()
    indent = function.indent(statement)
    deeper = indent + ("\t" if "\t" in indent else "    ")
    draft.replace(statement, f"if {step.id} % 50 == 0:\n{deeper}{{call}}", call=draft.indented(call, deeper))
    return draft.fix("write it down every 50 passes", Safety.SUGGEST, "it is written down on some passes only")


def metered(site: Site, function: Function) -> Fix | None:
    """`meter.update(loss.item(), n)`: the meter adds up on the device."""
    tensor, call = tensor_read(site.node, function), function.parent(site.node)
    if (
        tensor is None
        or function.loop(site.node) is None
        or not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "update"
        or site.node not in call.args
        or not isinstance(site.node, ast.expr)
    ):
        return None
    draft = function.draft()
    draft.replace(site.node, "{t}.detach()", t=tensor)
    return draft.fix(
        "give the meter the tensor",
        Safety.SUGGEST,
        "the meter's sums are tensors, in the tensor's own dtype, and are read where it is written down",
    )
