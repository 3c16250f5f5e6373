"""`torch.tensor(value, device=device)`, `x.new_tensor(value)`: a Python value copied to the device.

Why it waits
------------
The value is written to the host's memory first and copied from there, and the host waits for the copy, which comes after
everything that was asked for before. `torch.full` and `x.new_full` give the number with the kernel instead; so does
a number of Python's that a tensor is computed with.

When a fix pays
---------------
In every step, whatever the size: a wait for four bytes is as long as one for a megabyte. In `__init__` nothing is gained.

Fix safety
----------
Safe for a number that is written out: the same value and dtype. Unsafe for a name, because a numpy number gives
`torch.tensor` its own dtype. A list of numbers that are written out is made a buffer in a module, unsafe, as one that
`__init__` sets is. Elsewhere it can be made once for each device, by a function that is cached: unsafe, because all calls are
then given the same tensor. Other values can be made into a tensor on the host and sent without waiting: suggested, because that
is longer to read than `device=`, and it is for the backend to have taken them over before it returns, as CUDA does with up to
2 MB. One list that is sent several times is sent once by command.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.TENSOR_LITERAL,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::lift_fresh", "aten::to")
REWRITES = (
    "use_the_number",
    "give_number_to_where",
    "fill_tensor_on_device",
    "make_constant_once",
    "register_constant",
    "share_sent_index",
    "send_without_waiting",
)
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} copies a Python value to the device, and waits for the copy"


def certain(site: Site, function: Function) -> bool:
    return True  # what is filled holds the same, wherever it lives
