"""`torch.equal`, `torch.allclose`, `torch.is_nonzero`: a comparison whose answer is a Python bool.

Why it waits
------------
The answer is for Python, so the host waits until the device has computed both tensors and everything before them.

Fix safety
----------
An `assert` on such a comparison can become `torch._assert_async`: it is suggested, not applied, because the error comes later,
from the device, and is always a RuntimeError.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("equal", "allclose", "is_nonzero", "tensor_check")
SEEN_AS = ("aten::equal", "aten::allclose", "aten::is_nonzero")
TEMPLATES = {
    "torch.equal": "torch._assert_async(({a} == {b}).all(), {said})",
    "torch.allclose": "torch._assert_async(torch.isclose({a}, {b}).all(), {said})",
}
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            assert torch.allclose(x, y), "they drifted apart"  # !
            return x + y
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            torch._assert_async(torch.isclose(x, y).all(), "they drifted apart")
            return x + y
        """,
        Safety.SUGGEST,
        "x: finite[n]; y: finite[n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            return x if torch.equal(x, y) else y  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} answers with a Python bool: the host waits for both tensors"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    check, call = function.parent(site.node), site.node
    if not isinstance(check, ast.Assert) or not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    template = TEMPLATES.get(function.dotted(call.func) or "")
    if template is None:
        return None
    said = check.msg if isinstance(check.msg, ast.Constant) and isinstance(check.msg.value, str) else None
    draft = function.draft()
    draft.replace(
        check, template, a=call.args[0], b=call.args[1], said=said or repr(" ".join(function.view.text(call).split()))
    )
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        "the error is a RuntimeError that comes later, after further steps were asked for; on CUDA the device is then lost",
    )
