"""What libcst reads of a compound statement's head is what it reads of it in the whole function."""

import ast

from syncscope.codemod.parsing import HEADED, parse
from syncscope.rules import Function, View

HEADS = '''
class Model:
    def step(self, x, mask, rows: list):
        if x.sum() > 0 and (
            # why: not
            mask.any()  # at all
        ):
            # before the body
            x = -x
        elif x[mask].numel() == max(1, (len(rows))): return x
        elif "a: b" in rows:
            """text"""
        else:
            while x.mean().item() > 1 and \\
                    mask[0]: x /= 2; mask = ~mask
        for n, (row, _) in enumerate(
            rows, start=1,
        ):
            with open(f"{row!r}") as one, open('b') as \\
                 two:
                if two:
                      pass
        return lambda: x if x.all() else mask
'''


def test_a_head_reads_as_in_its_function():
    view = View(HEADS.encode())
    (scope,) = (n for n in ast.walk(view.tree) if isinstance(n, ast.FunctionDef))
    function = Function(view, scope, ())
    whole = parse(function, None)
    heads = function.every(*HEADED)
    assert len(heads) == 7
    for statement in heads:
        start = view.span(statement).start
        part = {span: node for span, node in parse(function, statement).items() if span[0] >= start}
        for span, node in part.items():
            assert node.deep_equals(whole[span]), view.code[slice(*span)]
        tests = [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.expr)]
        tests += [item.context_expr for item in getattr(statement, "items", ())]
        assert tests
        assert all((view.span(test).start, view.span(test).end) in part for test in tests)
