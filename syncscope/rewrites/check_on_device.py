"""`if t: raise` and `assert t` as `torch._assert_async`."""

from __future__ import annotations

import ast

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.checks import LATER, message
from syncscope.codemod.patterns.conditions import decided_by, holes, predicate, test_of
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Way

WAY = Way.CHECKS
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.FloatTensor):
            if torch.isnan(x).any():  # !
                raise ValueError("x has a hole")
            return x * 2
        """,
        """
        import torch

        def forward(x: torch.FloatTensor):
            torch._assert_async(~torch.isnan(x).any(), "x has a hole")
            return x * 2
        """,
        Safety.SUGGEST,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def ordered(x: torch.FloatTensor, name: str):
            assert (x[1:] > x[:-1]).all(), "{} must increase".format(name)  # !
            return x * 2
        """,
        """
        import torch

        def ordered(x: torch.FloatTensor, name: str):
            torch._assert_async((x[1:] > x[:-1]).all(), "{} must increase".format(name))
            return x * 2
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or site.confidence < 3 or statement is None or caught(function, statement):
        return None
    match statement:
        case ast.Assert(msg=said) if statement.test is test:
            condition = predicate(function, test)
        case ast.If(body=[ast.Raise(exc=error)], orelse=[]) if decided_by(site, function) is statement:
            condition = predicate(function, test, negated=True)
            said = error.args[0] if isinstance(error, ast.Call) and error.args else None
        case _:
            return None
    text = message(function, said, test)
    if condition is None or text is None:
        return None
    draft = Draft(function)
    draft.replace(statement, f"torch._assert_async({condition}, {{said}})", said=text, **holes(test))
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        *LATER,
    )
