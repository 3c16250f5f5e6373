"""A tensor copied from the device to the host: `.cpu()`, `.to("cpu")`.

Why it waits
------------
The copy is complete when the call returns: the host waits until the device has computed the tensor and everything before it.

What to do
----------
- Keep predictions on the device until the loop is over, and copy them together.
- Copy while the device goes on: `y.to("cpu", non_blocking=True)` waits for nothing, but what it gives must not be read before
  an event or `synchronize` says that it is there.
- What a replay buffer or a rollout keeps: leave it where it is read again. A buffer on the device takes rows of the device
  without a wait.
- An action for an environment on the host is needed at once: many environments side by side share one copy.
- Metrics of a step: compute them on the device, and copy the few numbers, not the tensors.

When a fix pays
---------------
Where the copy is not needed at once: asked for with `non_blocking=True` and waited for by an event, or put off to the end of
the epoch. Not where the host's next statement needs the values.

Fix safety
----------
Tensors that a loop only collects can stay on the device until it is over, and be copied together. Unsafe, because they all take
the device's memory until then.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.CPU,)
SEEN_AS = ("to", "aten::_to_copy", "aten::copy_", "read_buffer", "read_image", "map", "svm_memcpy")
REWRITES = ("copy_once_after_loop", "add_up_on_device", "read_comprehension_at_once")
EXAMPLES = ()


def message(site: Site, view: View) -> str | None:
    function = view.function(site)
    around = function.parent(site.node)
    taker = function.dotted(around.func) if isinstance(around, ast.Call) else None
    if taker is not None and taker.endswith(".pack_padded_sequence"):
        return f"{view.quote(site.node)} waits for the lengths: let the loader count them, and leave those on the host"
    return f"{view.quote(site.node)} waits until the device has computed it, and copies it to the host"
