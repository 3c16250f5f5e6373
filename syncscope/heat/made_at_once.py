"""Objects that are called where they are made, `Regression(bins)(x)`, or of a class that is looked up, `SOLVERS[method](f, x)`:
what makes them runs as often as the call.

Most modules are made before the training. One that is made and called in one breath is made anew in each step, and what it
sends to the device is sent again. Of what stands in a table, as of what is called by its name, no module is meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from syncscope.heat import blocks
from syncscope.heat.imported import Imported
from syncscope.heat.makers import Makers
from syncscope.heat.parsed_text import parsed
from syncscope.project.outline import FunctionText
from syncscope.project.syntax import name_of, walk

_AT_ONCE = re.compile(rb"(?<![\w.])(?:\w+\.)*([A-Za-z_]\w*)\((?:[^()\n]|\([^()\n]*\))*\)\(")

_LOOKED_UP = re.compile(rb"(\w+)\[[^\[\]\n]+\]\(")
_STAR = b"import *"


def made_at_once(caller: FunctionText, makers: Makers, imported: Imported) -> Iterator[FunctionText]:
    """What makes the objects that a function calls where it makes them, or whose classes it looks up, in no arm that is seldom
    gone into."""
    text = caller.text()
    if caller.name == "__init__":
        return
    said = {name.decode() for name in _AT_ONCE.findall(text)} & makers.classes.keys() if b")(" in text else ()
    held = {name.decode(): makers.of_table(name) for name in _LOOKED_UP.findall(text)} if b"](" in text else {}
    tree, code = parsed(caller) if said or any(held.values()) else (None, b"")
    if tree is None:
        return
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Call(func=ast.Name() | ast.Attribute() as made)) if (name := name_of(made)) in said:
                if blocks.of_call(tree, made, code) is None:
                    here = name in imported.names(caller.path) or _STAR in caller.source
                    yield from (each for each in makers.of_any(name) if here or each.path == caller.path)
            case ast.Call(func=ast.Subscript(value=ast.Name() | ast.Attribute() as table)) if held.get(name_of(table)):
                if blocks.of_call(tree, node, code) is None:
                    yield from held[name_of(table)]
