"""Statements: bindings, branches that join, loops, and what a test teaches about the names in it."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors import heat
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    BOOL,
    HOST,
    INTEGER,
    NONE,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    TENSOR,
    TRUTH,
    Items,
    element,
    items,
    iterated_over,
    join,
    named,
    sequence,
    tensor,
)
from syncscope.tensors.frame import STATEMENTS, Frame, condition, evaluate
from syncscope.tensors.functions import execute, set_attribute
from syncscope.tensors.indexing import index
from syncscope.tensors.project import Class, Function
from syncscope.tensors.scope import Instance, is_tensor, lookup

Env = dict[str, Fact]


def bind(frame: Frame, target: ast.expr, fact: Fact, value: ast.expr | None = None) -> None:
    """Give a value to the target of an assignment, a loop or a with."""
    kind = target.__class__
    if kind is ast.Name:
        name = target.id  # type: ignore[attr-defined]  # checked by class, which is faster than isinstance
        if fact.kind is UNKNOWN.kind and name in frame.used and frame.used[name] == 2:
            fact = frame.assumed(name, target)
        frame.env[name] = fact
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), None)
        count = len(target.elts)
        for position, each in enumerate(target.elts):
            if isinstance(each, ast.Starred):
                rest = fact.elements[position : len(fact.elements) - (count - position - 1)] if fact.elements else ()
                bind(
                    frame,
                    each.value,
                    sequence(rest) if rest else items(element(fact)) if fact.kind in (SEQUENCE, TENSOR) else UNKNOWN,
                )
            else:
                at = position if starred is None or position < starred else position - count
                bind(frame, each, unpacked(fact, at))
    elif isinstance(target, ast.Attribute):
        owner = evaluate(frame, target.value)
        if isinstance(owner.ref, Instance):
            set_attribute(owner, target.attr, fact, frame.function)
        path = dotted(target)
        if path:
            frame.env[path] = fact
    elif isinstance(target, ast.Subscript):
        write_item(frame, target, fact, value)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, items(element(fact)))


def dotted(node: ast.expr) -> str:
    """`a.b.c` as text; "" when it is not such a chain."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
        return ".".join(reversed(parts))
    return ""


def unpacked(fact: Fact, position: int) -> Fact:
    """What unpacking gives at a position: a tensor is unpacked along its first dimension."""
    return element(fact, position)


def write_item(frame: Frame, target: ast.Subscript, fact: Fact, value: ast.expr | None) -> None:
    """`base[index] = value`."""
    base = evaluate(frame, target.value)
    if base.kind is SEQUENCE or base is UNKNOWN or base.kind is OTHER:
        remember(frame, target, base, fact)
    mask, node, _ = index(frame, target, base)
    single = (fact.kind is SCALAR or (fact.kind is TENSOR and fact.ndim == 0)) and not _gathers(frame, target, node)
    if base.kind is not ARRAY and mask is not None and not single:
        # a Python number lowers to masked_fill, and a 0-dimensional tensor on the device is filled in the same way
        sure = 3 if fact.kind in (TENSOR, SCALAR) else 1
        if base.kind is not TENSOR:
            sure = min(sure, 2)
        frame.emit("mask_write", target, node, mask, min(sure, base.sure if base.kind is TENSOR else sure))
    if value is not None and fact.kind is TENSOR and base.kind is TENSOR and base.device is HOST:
        frame.emit("cpu", value, value, fact, 2)  # into a tensor on the host


def _gathers(frame: Frame, target: ast.Subscript, mask: ast.expr | None) -> bool:
    """Whether a tensor or list stands in the index beside the mask."""
    if not isinstance(target.slice, ast.Tuple):
        return False
    others = (
        each for each in target.slice.elts if each is not mask and not isinstance(each, (ast.Slice, ast.Constant))
    )
    return any(evaluate(frame, each).kind in (TENSOR, SEQUENCE, ARRAY) for each in others)


def remember(frame: Frame, target: ast.Subscript, base: Fact, fact: Fact) -> None:
    """A dict or list that is filled item by item."""
    if not isinstance(target.value, ast.Name) or (fact.kind is UNKNOWN.kind):
        return
    key = target.slice.value if isinstance(target.slice, ast.Constant) else None
    ref = base.ref
    if base.kind is SEQUENCE:
        keys = dict(ref.keys) if isinstance(ref, Items) and ref.keys is not None else {}
        each = ref.each if isinstance(ref, Items) else element(base) if base.elements else UNKNOWN
        if key is not None:
            keys[key] = fact
        else:
            each = fact if each is UNKNOWN else join(each, fact)
        frame.env[target.value.id] = items(each, keys)
    elif base is UNKNOWN and isinstance(key, str):  # `state["step"] = ...`: it is a dict, of which this is known
        frame.env[target.value.id] = items(UNKNOWN, {key: fact})


def assign(frame: Frame, node: ast.Assign) -> None:
    """`a = b = value`."""
    value = node.value
    if value.__class__ is ast.Tuple and len(node.targets) == 1 and node.targets[0].__class__ is ast.Tuple:
        pairs(frame, node.targets[0], value)
        return
    fact = frame.table[value.__class__](frame, value)
    if fact is TRUTH and value.__class__ is ast.Call and value.args:
        fact = Fact(SCALAR, BOOL, HOST, sure=3, ref=value)  # `known = isinstance(x, Tensor)`: asked for later
    for target in node.targets:
        if target.__class__ is ast.Name:
            name = target.id
            if fact.kind is UNKNOWN.kind and name in frame.used and frame.used[name] == 2:
                frame.env[name] = frame.assumed(name, node)
            else:
                frame.env[name] = fact
        else:
            bind(frame, target, fact, value)


def pairs(frame: Frame, target: ast.Tuple, value: ast.Tuple) -> None:
    """`a, b = x, y` and `b, t, d = *x.shape, x.device`: one by one."""
    facts: list[Fact] = []
    spread = sum(isinstance(each, ast.Starred) for each in value.elts)
    room = len(target.elts) - len(value.elts) + 1
    for each in value.elts:
        if isinstance(each, ast.Starred):
            inner = evaluate(frame, each.value)
            facts += [element(inner, at) for at in range(room)] if spread == 1 else []
        else:
            facts.append(frame.table[each.__class__](frame, each))
    if len(facts) != len(target.elts) or any(isinstance(each, ast.Starred) for each in target.elts):
        bind(frame, target, sequence(tuple(facts)) if not spread else UNKNOWN)
        return
    for each, fact in zip(target.elts, facts, strict=True):
        bind(frame, each, fact)


def ann_assign(frame: Frame, node: ast.AnnAssign) -> None:
    """`a: Tensor = value`: what the value is outranks what the annotation says, unless it is unknown."""
    from syncscope.tensors.annotations import annotated

    fact = evaluate(frame, node.value) if node.value is not None else UNKNOWN
    said = annotated(frame.module, node.annotation)
    if fact.kind is UNKNOWN.kind or (
        said.kind is TENSOR and fact.kind is TENSOR and said.sure > fact.sure and fact.sure < 2
    ):
        fact = said
    if node.value is not None or not isinstance(node.target, ast.Name):
        bind(frame, node.target, fact, node.value)


def aug_assign(frame: Frame, node: ast.AugAssign) -> None:
    """`a += value`."""
    from syncscope.tensors.expressions import binary

    value = evaluate(frame, node.value)
    target = node.target
    if isinstance(target, ast.Subscript):
        base = evaluate(frame, target.value)
        mask, at, _ = index(frame, target, base)
        if mask is not None and base.kind is not ARRAY:
            frame.emit("mask_write", target, at, mask, base.sure if base.kind is TENSOR else 2)
        return
    before = evaluate(frame, target)
    fact = binary(node, before, value, node.op)
    if before.kind is TENSOR and before.sure >= 2 and fact.kind is not TENSOR:
        fact = before
    if before.kind is SEQUENCE:
        fact = join(before, value) if value.kind is SEQUENCE else before
    bind(frame, target, fact)


def returned(frame: Frame, node: ast.Return) -> None:
    """`return value`."""
    frame.returns.append(evaluate(frame, node.value) if node.value is not None else NONE)
    frame.dead = True


def expression(frame: Frame, node: ast.Expr) -> None:
    """An expression for its effect."""
    value = node.value
    if value.__class__ is not ast.Constant:
        fact = frame.table[value.__class__](frame, value)
        if value.__class__ in (ast.Yield, ast.YieldFrom):
            frame.returns.append(fact)


def raised(frame: Frame, node: ast.Raise) -> None:
    """`raise`: what an error message reads costs nothing until it is raised."""
    before, frame.heat = frame.heat, (False, "only when it raises")
    waits, frame.waits = frame.waits, None  # what an error message reads costs nothing until it is raised
    if node.exc is not None:
        evaluate(frame, node.exc)
    frame.heat, frame.waits = before, waits
    frame.dead = True


def stopped(frame: Frame, node: ast.stmt) -> None:
    """`break`, `continue`: the rest of the block is not reached."""
    frame.dead = True


def merge(frame: Frame, left: Env, left_dead: bool, right: Env, right_dead: bool) -> None:
    """Join two ends of a branch; an end that is not reached does not count."""
    if left_dead:
        frame.env = right
        frame.dead = right_dead
        return
    frame.dead = False
    if right_dead:
        frame.env = left
        return
    if len(left) < len(right):
        left, right = right, left
    for name, fact in left.items():
        other = right.get(name)
        if other is not fact:
            left[name] = join(fact, other) if other is not None else fact
    if len(right) > 0:
        for name, fact in right.items():
            if name not in left:
                left[name] = fact
    frame.env = left


def branch(frame: Frame, node: ast.If) -> None:
    """`if`: both ways, each with what the test teaches, joined at the end."""
    test = node.test
    condition(frame, test)
    if _main_guard(test):
        before, frame.heat = frame.heat, (False, "under `if __name__ == '__main__'`: once")
        execute(frame, node.body)
        frame.heat = before
        frame.dead = False
        return
    when, otherwise = learnt(frame, test)
    truth = constant(frame, test)
    start = frame.env
    left = dict(start)
    left.update(when)
    frame.env = left
    before = frame.heat
    guarded = frame.guarded
    frame.guarded = guarded or heat.special(test)
    rare = heat.of_test(test)
    if rare is not None:
        frame.heat = rare
    if truth is not False:
        execute(frame, node.body)
    else:
        frame.dead = True
    frame.heat = before
    frame.guarded = guarded
    left, left_dead = frame.env, frame.dead
    frame.dead = False
    right = dict(start)
    right.update(otherwise)
    frame.env = right
    if truth is True:
        frame.dead = True
    elif node.orelse:
        execute(frame, node.orelse)
    merge(frame, left, left_dead, frame.env, frame.dead)


def _main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def constant(frame: Frame, test: ast.expr) -> bool | None:
    """The truth of a test that the facts decide: isinstance of something known, torch.is_tensor of a tensor."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(frame, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Call) and test.args and isinstance(test.func, (ast.Name, ast.Attribute)):
        word = test.func.id if isinstance(test.func, ast.Name) else test.func.attr
        if word == "isinstance" and len(test.args) == 2:
            fact = frame.env.get(dotted(test.args[0]))
            of = kinds_of(frame, test.args[1])
            if fact is not None and fact.sure >= 2 and "?" not in of:
                if fact.kind is TENSOR:
                    return "tensor" in of
                if fact.sure == 3 and fact.kind in (SCALAR, ARRAY, SEQUENCE) and of == {"tensor"}:
                    return False
        elif word in ("is_tensor", "is_torch_tensor"):
            fact = frame.env.get(dotted(test.args[0]))
            if fact is not None and fact.kind is TENSOR and fact.sure >= 2:
                return True
    return None


def kinds_of(frame: Frame, node: ast.expr) -> set[str]:
    """What `isinstance` asks for: tensor, number, array, sequence, other words; "?" for what is not known."""
    parts: list[ast.expr] = [node]
    found: set[str] = set()
    while parts:
        part = parts.pop()
        if isinstance(part, ast.Tuple):
            parts.extend(part.elts)
        elif isinstance(part, ast.BinOp):
            parts.extend([part.left, part.right])
        elif isinstance(part, ast.Call):
            parts.extend(part.args[:1]) if isinstance(part.func, ast.Name) and part.func.id == "type" else found.add(
                "?"
            )
            if parts and isinstance(part.func, ast.Name) and part.func.id == "type":
                parts.pop()
                found.add("other")
        else:
            fact = evaluate(frame, part)
            ref = fact.ref
            if isinstance(ref, str):
                word = ref.rpartition(".")[2]
                if ref.startswith("torch.") and (word.endswith("Tensor") or word in ("Parameter", "Buffer")):
                    found.add("tensor")
                elif ref.startswith("builtins."):
                    found.add(
                        "number"
                        if word in ("int", "float", "bool", "complex")
                        else "sequence"
                        if word in ("list", "tuple", "dict", "set")
                        else "other"
                    )
                elif ref.startswith("numpy"):
                    found.add("array")
                elif ref.startswith("numbers.") or word == "Number":
                    found.add("number")
                elif word == "Tensor":
                    found.add("tensor")
                else:
                    found.add("other" if ref.startswith(("torch.", "collections", "typing")) else "?")
            else:
                found.add("tensor" if isinstance(ref, Class) and is_tensor(ref) else "?")
    return found


def learnt(frame: Frame, test: ast.expr) -> tuple[Env, Env]:
    """What holds of names when a test is true, and when it is false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        when, otherwise = learnt(frame, test.operand)
        return otherwise, when
    if isinstance(test, ast.BoolOp):
        parts = [learnt(frame, each) for each in test.values]
        both: Env = {}
        side = 0 if isinstance(test.op, ast.And) else 1
        for part in parts:
            both.update(part[side])
        return (both, {}) if side == 0 else ({}, both)
    if isinstance(test, ast.Call) and isinstance(test.func, (ast.Name, ast.Attribute)) and test.args:
        word = test.func.id if isinstance(test.func, ast.Name) else test.func.attr
        name = dotted(test.args[0])
        if not name:
            return {}, {}
        if word == "isscalar":
            return {name: NUMBER}, {}
        if word in ("is_tensor", "is_torch_tensor"):
            return {name: proved(frame, name, test)}, {name: _not_a(frame, name, {"tensor"})}
        if word == "isinstance" and len(test.args) == 2:
            of = kinds_of(frame, test.args[1])
            if of == {"tensor"}:
                return {name: proved(frame, name, test)}, {name: _not_a(frame, name, of)}
            if "tensor" not in of and "?" not in of:
                now = frame.env.get(name) or evaluate(frame, test.args[0])
                rest = {name: now.but(sure=2)} if now.kind is TENSOR and now.sure == 1 and of <= _BESIDE else {}
                if of == {"number"}:
                    return {name: NUMBER}, rest
                if now.kind is TENSOR:
                    return {name: Fact(OTHER, sure=3, ref="other")}, rest
    if isinstance(test, ast.Name):
        asked = frame.env.get(test.id)
        if asked is not None and asked.kind is SCALAR and isinstance(asked.ref, ast.Call):
            return learnt(frame, asked.ref)
    return _placed(frame, test) if isinstance(test, (ast.Compare, ast.Attribute)) else ({}, {})


_BESIDE = {"number", "array"}  # what is taken beside tensors: what is guessed to be one, and is none of these, is one


def _placed(frame: Frame, test: ast.expr) -> tuple[Env, Env]:
    """What `x.is_cuda` and `x.device.type == "cpu"` say of where x lives."""
    node: ast.expr = test
    host_when = False  # that it is not on the host says nothing new
    if isinstance(test, ast.Compare):
        kind = test.comparators[0]
        node = test.left
        if isinstance(node, ast.Attribute) and node.attr == "type":
            node = node.value
        if len(test.ops) != 1 or not (isinstance(node, ast.Attribute) and node.attr == "device"):
            return {}, {}
        word = kind.value if isinstance(kind, ast.Constant) else ""
        if word == "cpu" and isinstance(test.ops[0], ast.Eq):
            host_when = True
        elif not (word == "cpu" and isinstance(test.ops[0], ast.NotEq)):
            return {}, {}
    elif not (isinstance(test, ast.Attribute) and test.attr == "is_cuda"):
        return {}, {}
    assert isinstance(node, ast.Attribute)
    name = dotted(node.value)
    fact = frame.env.get(name)
    if fact is None or fact.kind is not TENSOR:
        return {}, {}
    placed = {name: fact.but(device=HOST)}
    return (placed, {}) if host_when else ({}, placed)


def proved(frame: Frame, name: str, test: ast.expr) -> Fact:
    """A name that a test has shown to be a tensor."""
    now = frame.env.get(name, UNKNOWN)
    if now.kind is TENSOR:
        return now if now.sure == 3 else Fact(TENSOR, now.dtype, now.device, now.shape, now.ndim, 3, test, source=now)
    return tensor(sure=3, why=test)


def _not_a(frame: Frame, name: str, of: set[str]) -> Fact:
    now = frame.env.get(name, UNKNOWN)
    return UNKNOWN if now.kind is not TENSOR else Fact(OTHER, sure=1, ref="other")


def loop_while(frame: Frame, node: ast.While) -> None:
    """`while`: the body once, and again when it changed a tensor that it starts from."""
    start = dict(frame.env)
    before = frame.heat
    if heat.trains(node, frame.module.source):
        frame.heat = heat.TRAINING
    condition(frame, node.test)
    when, otherwise = learnt(frame, node.test)
    frame.env.update(when)
    execute(frame, node.body)
    frame.dead = False
    again = any(
        start.get(name, UNKNOWN) != fact and fact.kind is TENSOR for name, fact in frame.env.items() if name in start
    )
    merge(frame, frame.env, False, start, False)
    if again:
        after = dict(frame.env)
        condition(frame, node.test)
        execute(frame, node.body)
        frame.dead = False
        merge(frame, frame.env, False, after, False)
    frame.env.update(otherwise)
    frame.heat = before
    if node.orelse:
        execute(frame, node.orelse)
    endless = isinstance(node.test, ast.Constant) and node.test.value
    frame.dead = bool(endless) and not any(isinstance(each, ast.Break) for each in ast.walk(node))


def loop_for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    """`for`: like `while`; a loop over a loader is hot."""
    over = evaluate(frame, node.iter)
    each, loader = iterated(frame, node.iter, over)
    start = dict(frame.env)
    before = frame.heat
    if heat.trains(node, frame.module.source):
        frame.heat = heat.TRAINING
    elif loader and (before is None or before[0]):
        cold = heat.of_function(frame.function)
        if cold[0] or frame.function is None:
            frame.heat = (True, "in a loop over a loader")
    bind(frame, node.target, each)
    execute(frame, node.body)
    frame.dead = False
    again = any(start[name] != fact and fact.kind is TENSOR for name, fact in frame.env.items() if name in start)
    merge(frame, frame.env, False, start, False)
    if again:
        after = dict(frame.env)
        bind(frame, node.target, each)
        execute(frame, node.body)
        frame.dead = False
        merge(frame, frame.env, False, after, False)
    frame.heat = before
    if node.orelse:
        execute(frame, node.orelse)
    frame.dead = False


def iterated(frame: Frame, node: ast.expr, over: Fact) -> tuple[Fact, bool]:
    """What a loop variable gets, and whether it comes from a loader."""
    ref = over.ref
    if ref == "torch.utils.data.DataLoader()":
        return Fact(BATCH, device=HOST, sure=2, why="a batch of a DataLoader"), True
    inner = node
    while isinstance(inner, ast.Call) and inner.args:
        inner = inner.args[0]
    word = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
    if over.kind is BATCH:
        return element(over), False
    if over.kind is UNKNOWN.kind and heat.is_loader(word):
        batch = Fact(BATCH, device=SOMEWHERE, sure=1, why=f"a batch of `{word}`")
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "enumerate":
            return sequence((INTEGER, batch)), True
        return batch, True
    each = iterated_over(over)
    loader = each.kind is BATCH or any(e.kind is BATCH for e in each.elements)
    return each, loader


def with_block(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    """`with`."""
    before = frame.heat
    for item in node.items:
        fact = evaluate(frame, item.context_expr)
        if item.optional_vars is not None:
            bind(frame, item.optional_vars, fact if isinstance(fact.ref, Instance) else UNKNOWN)
    frame.heat = heat.of_with(node) or before
    execute(frame, node.body)
    frame.heat = before


def try_block(frame: Frame, node: ast.Try) -> None:
    """`try`: a handler starts from where the block started."""
    start = dict(frame.env)
    execute(frame, node.body)
    if not frame.dead and node.orelse:
        execute(frame, node.orelse)
    end, dead = frame.env, frame.dead
    for handler in node.handlers:
        frame.env, frame.dead = dict(start), False
        execute(frame, handler.body)
        merge(frame, end, dead, frame.env, frame.dead)
        end, dead = frame.env, frame.dead
    frame.env, frame.dead = end, dead
    if node.finalbody:
        execute(frame, node.finalbody)
        frame.dead = frame.dead or dead


def asserted(frame: Frame, node: ast.Assert) -> None:
    """`assert`: its message costs nothing until it fails."""
    condition(frame, node.test)
    when, _ = learnt(frame, node.test)
    frame.env.update(when)
    if node.msg is not None:
        waits, frame.waits = frame.waits, None
        evaluate(frame, node.msg)
        frame.waits = waits


def define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """A function: run at the end of the block it stands in, or when it is called."""
    if frame.function is None and frame.outer is None and frame.module.symbols.get(node.name) is node:
        fact = lookup(frame.module, node.name)
        function = fact.ref
    else:
        function = Function(node, frame.module, None, frame)
        fact = Fact(OTHER, sure=3, ref=function)
    for decorator in node.decorator_list:
        evaluate(frame, decorator)
    frame.env[node.name] = fact
    if isinstance(function, Function):
        frame.nested.append(function)


def define_class(frame: Frame, node: ast.ClassDef) -> None:
    """A class: its body now, its methods like functions."""
    if frame.function is None and frame.module.symbols.get(node.name) is node:
        fact = lookup(frame.module, node.name)
    else:
        fact = Fact(OTHER, sure=3, ref=Class(node, frame.module))
    frame.env[node.name] = fact
    if isinstance(fact.ref, Class):
        outer, frame.env = frame.env, dict(frame.env)
        for statement in node.body:
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                STATEMENTS[statement.__class__](frame, statement)
        frame.env = outer
        frame.dead = False
        frame.nested.extend(fact.ref.methods.values())
        seen = {method.node for method in fact.ref.methods.values()}
        for statement in node.body:  # a property's setter has the same name
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement not in seen:
                frame.nested.append(Function(statement, frame.module, fact.ref))


def imported(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """An import inside a function."""
    if frame.function is None:
        return
    for alias in node.names:
        if isinstance(node, ast.Import):
            frame.env[alias.asname or alias.name.partition(".")[0]] = named(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
        else:
            from syncscope.tensors.scope import _imported

            name = alias.asname or alias.name
            frame.env[name] = _imported(frame.module, node, name)


def matched(frame: Frame, node: ast.Match) -> None:
    """`match`: every case from the same start."""
    evaluate(frame, node.subject)
    start = frame.env
    end: Env | None = None
    dead = True
    for case in node.cases:
        frame.env, frame.dead = dict(start), False
        if case.guard is not None:
            condition(frame, case.guard)
        execute(frame, case.body)
        if end is None:
            end, dead = frame.env, frame.dead
        else:
            merge(frame, end, dead, frame.env, frame.dead)
            end, dead = frame.env, frame.dead
    merge(frame, end if end is not None else start, dead, dict(start), False)


def deleted(frame: Frame, node: ast.Delete) -> None:
    """`del name`."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.env.pop(target.id, None)


def nothing(frame: Frame, node: ast.stmt) -> None:
    """pass, global, nonlocal, type: no value changes hands."""


STATEMENTS.update(
    {
        ast.Assign: assign,
        ast.AnnAssign: ann_assign,
        ast.AugAssign: aug_assign,
        ast.Return: returned,
        ast.Expr: expression,
        ast.Raise: raised,
        ast.Break: stopped,
        ast.Continue: stopped,
        ast.If: branch,
        ast.While: loop_while,
        ast.For: loop_for,
        ast.AsyncFor: loop_for,
        ast.With: with_block,
        ast.AsyncWith: with_block,
        ast.Try: try_block,
        ast.Assert: asserted,
        ast.FunctionDef: define,
        ast.AsyncFunctionDef: define,
        ast.ClassDef: define_class,
        ast.Import: imported,
        ast.ImportFrom: imported,
        ast.Match: matched,
        ast.Delete: deleted,
        ast.Pass: nothing,
        ast.Global: nothing,
        ast.Nonlocal: nothing,
    }
)
for _name in ("TryStar", "TypeAlias"):
    if hasattr(ast, _name):
        STATEMENTS[getattr(ast, _name)] = try_block if _name == "TryStar" else nothing
