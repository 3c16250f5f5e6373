"""A tensor made on the host and then moved: `torch.zeros(n).to(device)`.

Why it waits
------------
The host fills the memory itself, copies it to the device and waits for the copy. With `device=` the device makes it.

When a fix pays
---------------
In every step, whatever the size: what costs is the wait, not the bytes. Nothing is gained in set-up, or where the value is
read on the host again.

Fix safety
----------
Safe for zeros, ones and numbers of one value: the same tensor. Unsafe for random numbers, because the device's generator
draws other ones for the same seed, and for ranges, whose last bits may differ. Values that only the host has can be sent
without waiting: unsafe, because it is for the backend to have taken them over before it returns, as CUDA does; suggested where
they may be more than the 2 MB that CUDA takes over at once, or where no line of the project says `non_blocking=True` yet.
"""

from __future__ import annotations

import ast

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

FROM_VALUES = {"tensor", "Tensor", "FloatTensor", "LongTensor", "as_tensor", "from_numpy"}  # which only the host has
SEVERITY = Severity.WARNING
OPS = (Op.CREATED_ON_HOST,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to")
REWRITES = (
    "use_the_number",
    "give_number_to_where",
    "create_on_device",
    "fill_as_converted",
    "fill_like_another",
    "make_parts_on_device",
    "register_constant",
    "share_sent_index",
    "send_without_waiting",
)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x + torch.ones(x.shape[1], device=x.device)
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    waited = f"{view.quote(site.node)} is made on the host, copied to the device, and waited for"
    made: ast.AST = site.node
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and isinstance(made.func.value, ast.Call):
        made = made.func.value  # under `.float()` and the like
    match made:
        case ast.Call(func=ast.Attribute(attr=word)) if word in FROM_VALUES:
            return f"{waited}: non_blocking=True sends it"
    return f"{waited}: device= makes it there"
