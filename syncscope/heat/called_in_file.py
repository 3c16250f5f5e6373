"""What the steps of one file call in it, though it runs seldom by its name: what is asked of a file that is in no project."""

from __future__ import annotations

import ast

from syncscope.heat import loops
from syncscope.heat.asked_by_name import asking
from syncscope.heat.by_text import is_of_loss, is_step
from syncscope.heat.called_in_steps import Calls, is_seldom
from syncscope.heat.closure import Closure
from syncscope.heat.losses import entrances
from syncscope.heat.makers import Makers
from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, Spoken, outlined


def called_in_file(path: str, source: bytes, tree: ast.Module) -> frozenset[str]:
    """What the steps of a file call in it, a training loop at its top level among them: "Class.method"."""
    functions, classes, _ = outlined(path, b"\n" + source)
    seldom = [each for each in functions if is_seldom(each, False)]
    if not seldom:
        return frozenset()
    definitions = Definitions({path: source})
    definitions.add(functions, classes)
    apart = {each.key for each in seldom}
    others = [each for each in functions if each.key not in apart]
    steps = [*filter(is_step, others), *entrances(filter(is_of_loss, others), definitions.classes)]
    top = loops.at_top(tree)
    if not steps and top is None:
        return frozenset()
    said = Spoken(definitions.defined, asking(functions))
    calls = Calls(seldom, definitions, said, Makers({}, {}), steps)
    whole = FunctionText("", "", set(), path, source, 0, 0, len(source))
    first = calls.within(top, source, whole, calls.seldom) if top is not None else []
    closure = Closure(definitions, said, apart)
    reached = closure.of((), [*first, *steps])
    closure.with_calls(reached, [*first, *steps, *closure.running(reached)], calls)
    return frozenset(f"{each.cls}.{each.name}" for each in calls.found.values())
