"""Where a project compiles the model that it trains: `torch.compile` switches off all checks of distributions in a run."""

from __future__ import annotations

import ast
import re

from syncscope.project.syntax import name_of, parents, walk

_IN_ITS_PLACE = re.compile(
    rb"^[ \t]*((?:\w+\.)*\w*(?:model|net|network|module|policy|actor|critic))[ \t]*=[ \t]*torch\.compile\(\s*\1\s*[,)]",
    re.MULTILINE,
)
_OF_THE_MACHINE = frozenset(("torch", "hasattr", "sys", "platform", "version", "os"))


def compiles_its_model(source: bytes) -> bool:
    """Whether a file puts a compiled model in the place of the model, unless it is told not to: no flag asks for it before."""
    if b"torch.compile(" not in source or _IN_ITS_PLACE.search(source) is None:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    above = parents(tree)
    return any(_in_its_place(node) and not _asked_for(node, above) for node in walk(tree))


def _in_its_place(node: ast.AST) -> bool:
    match node:
        case ast.Assign(
            targets=[target],
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="compile"), args=[model, *_]),
        ):
            return name_of(target) != "" and ast.unparse(target) == ast.unparse(model)
    return False


def _asked_for(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether it stands in an arm that a flag chooses, `if args.compile:`; what asks the machine is no flag."""
    inner, outer = node, above.get(node)
    while outer is not None:
        if isinstance(outer, ast.If) and inner in outer.body:
            asked = {each.id for each in walk(outer.test) if isinstance(each, ast.Name)}
            if not asked <= _OF_THE_MACHINE:
                return True
        inner, outer = outer, above.get(outer)
    return False
