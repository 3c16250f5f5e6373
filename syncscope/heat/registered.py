"""What is only registered, to be called where the state of a module or an optimizer is loaded or saved."""

from __future__ import annotations

import ast

from syncscope.project import hooks
from syncscope.project.modules import Module, ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import name_of, walk


def called_with_state(function: ProjectFunction) -> bool:
    """Whether its file hands a function to what calls it then, and speaks of it nowhere else."""
    return function.closure is None and function.name in _registered(function.module)


@kept(4)  # asked for each function of a file
def _registered(module: Module) -> frozenset[str]:
    if b"state_dict_" not in module.source or b"hook" not in module.source:
        return frozenset()
    given: set[ast.AST] = set()
    every = walk(module.tree)
    for node in every:
        if isinstance(node, ast.Call) and hooks.OF_STATE.match(name_of(node.func)):
            given.update(node.args, (each.value for each in node.keywords))
    names = {name_of(each) for each in given} - {""}
    read = (each for each in every if isinstance(getattr(each, "ctx", None), ast.Load) and name_of(each) in names)
    return frozenset(names - {name_of(each) for each in read if each not in given})
