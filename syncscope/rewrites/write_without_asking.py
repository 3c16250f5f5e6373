"""`if m.any(): x[m] = number` without asking, or chosen by `torch.where`: where nothing is masked, nothing is written.

So are other resets of states: `h = h * (1 - done)`, `h[:, done] = 0`, those of several states, of attributes and of tuples.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import decided_by, key, waits
from syncscope.codemod.patterns.resets import MaskAsked, leaves_all
from syncscope.codemod.proofs import is_mask
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.rewrites.choose_with_where import WHERE, choice

SUMS = ("{m}.sum(**_)", "{m}.sum(**_).item()")
COUNTS = ("{m}.any(**_)", "{m}.any(**_).item()", "{m}.count_nonzero(**_)", "{m}.count_nonzero(**_).item()", *SUMS)
ASKED = ("bool({m}.any(**_))", *(f"{count}{more}" for more in ("", " > 0", " != 0") for count in COUNTS))
COMPILES = True
CLEARS = True
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            low = x < 0
            if low.any():  # !
                x[low] = 0  # no debts
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            low = x < 0
            x[low] = 0  # no debts
            return x
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            out = torch.zeros_like(x)
            high = x > 1
            if high.any():  # !
                out[high] = x[high].square() * 2
            return out
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            out = torch.zeros_like(x)
            high = x > 1
            out = torch.where(high, x.square() * 2, out)
            return out
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def rollout(gru, z: torch.Tensor, done: torch.Tensor, h: torch.Tensor):
            out = []
            for zt, d in zip(z, done):
                if d.any():  # !
                    # an episode begins
                    h = h.clone()
                    h[d.bool()] = 0.0
                h = h + zt
                out.append(h)
            return torch.stack([h, *out])
        """,
        """
        import torch

        def rollout(gru, z: torch.Tensor, done: torch.Tensor, h: torch.Tensor):
            out = []
            for zt, d in zip(z, done):
                # an episode begins
                h = h.clone()
                h[d.bool()] = 0.0
                h = h + zt
                out.append(h)
            return torch.stack([h, *out])
        """,
        Safety.UNSAFE,
        "gru: bar; z: finite[t, n, m]; done: label[t, n] < 2; h: finite[n, m]",
        rule="tensor-in-condition",
    ),
    Example(
        """
        import torch

        def begun(states: tuple[torch.Tensor, torch.Tensor], done: torch.Tensor, training: bool):
            h, c = states
            if training and (done == 1).any():  # !
                h, c = h * (1 - (done == 1).float())[:, None], torch.where((done == 1).unsqueeze(1), 0.0, c)
            return h, c

        def forward(h: torch.Tensor, c: torch.Tensor, done: torch.Tensor):
            return begun((h, c), done, True)
        """,
        """
        import torch

        def begun(states: tuple[torch.Tensor, torch.Tensor], done: torch.Tensor, training: bool):
            h, c = states
            if training:
                h, c = h * (1 - (done == 1).float())[:, None], torch.where((done == 1).unsqueeze(1), 0.0, c)
            return h, c

        def forward(h: torch.Tensor, c: torch.Tensor, done: torch.Tensor):
            return begun((h, c), done, True)
        """,
        Safety.UNSAFE,
        "h: finite[n, m]; c: finite[n, m]; done: label[n]",
        rule="tensor-in-condition",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    return unasked(function, function.statement(site.node)) or chosen(site, function, decided_by(site, function))


def unasked(function: Function, statement: ast.stmt | None) -> Fix | None:
    """The fix for statements that leave all as it is where nothing is masked: what they do is done without asking."""
    if not isinstance(statement, ast.If) or statement.orelse or function.is_elif(statement):
        return None
    match statement.test:
        case ast.BoolOp(op=ast.And(), values=parts):
            pass
        case test:
            parts = [test]
    about = [(part, found["m"]) for part in parts if (found := seen(function, part, *ASKED)) is not None]
    if len(about) != 1 or not all(map(function.pure, parts)):
        return None
    (test, mask), rest = about[0], [part for part in parts if part is not about[0][0]]
    changes = leaves_all(MaskAsked(function, mask), statement.body)
    if changes is None or any(waits(function, part) for part in rest):
        return None
    # of positive and negative numbers it may be 0
    if not is_mask(function.fact(mask)) and "sum" in function.file.text(test):
        changes.insert(0, f"{function.file.text(mask)} must hold no negative numbers")
    draft = Draft(function)
    if rest:
        template = " and ".join(f"{{{key(part)}}}" for part in rest)
        draft.replace(statement.test, template, **{key(part): part for part in rest})
    else:
        draft.unwrap(statement)
    return draft.fix("write without asking", Safety.UNSAFE, *changes)


def chosen(site: Site, function: Function, statement: ast.If | None) -> Fix | None:
    """The fix for values: `if m.any(): x[m] = f(a[m])` as `x = torch.where(m, f(a), x)`."""
    if statement is None or len(statement.body) != 1 or statement.orelse:
        return None
    asked = seen(function, statement.test, *ASKED)
    if asked is None or not is_mask(function.fact(asked["m"])):
        return None
    draft = Draft(function)
    found = choice(site, function, statement.body[0], draft)
    if found is None or not function.same(found.mask, asked["m"]):
        return None
    draft.replace(statement, WHERE, x=found.x, m=found.chosen, value=found.value)
    fix = draft.fix("compute all, and choose, without asking", found.safety, *found.changes)
    return replace(fix, adds=Adds.ROWS)
