"""A number of the device read by the host: `.item()`, `.tolist()`, `float(t)`, `int(t)`, `bool(t)`.

Why it waits
------------
To give a Python number the host waits until the device has computed everything that was asked for before, and asks for
nothing more meanwhile. In a loop the device then has nothing to do at the beginning of every pass.

What to do
----------
- A number that is only added up or kept: keep the tensor, `.detach()`, and read once after the loop.
- A number that is only written down: read it on the passes that write, and read all of that line with one `.tolist()`.
- A number that only meets tensors again, a count to divide by: leave out the `.item()`.
- A random number that decides what the host does next: draw it there, without `device=`.
- The elements of a tensor, one in each pass of a loop: `t.tolist()` once, before it.
- A position at which each pass of a loop writes (`best[x[:, j].argmax().item()] = labels[j]`): all passes at once,
  `best.scatter_(0, x.argmax(0), labels)`, where no two passes meet at one position or it does not matter which is the last.
- The norm of all gradients: what `clip_grad_norm_` returned, a tensor, or `torch.nn.utils.get_total_norm`.
- A number that decides how to go on (early stopping, a schedule): ask every n steps, or one step late, from a copy that was
  asked for in the step before: `loss.to("cpu", non_blocking=True)` into pinned memory, and an event.
- A number that the host knew before: `x.shape[0]`, the length that the loader counted, the step.

When a fix pays
---------------
Where the read stands between two pieces of device work, in every step. Nothing is gained from a read after which the host has
nothing to queue (the last statement of a loop that waits for the loader anyway), from one on every hundredth step, or in
evaluation.

Fix safety
----------
A value that is only logged every n steps need only be read then: safe where nothing but plain expressions stands between. A
running total can stay on the device: of whole numbers in int64, of others in float64, in which Python adds too, so the sums
are equal bit for bit, in files that name no device but CPU and CUDA, elsewhere in float32, for MPS has no float64. Safe where
nobody looks at the total inside the loop and what is added is surely a tensor of one number, of others only real numbers in
float64, times numbers of Python's (numpy's round otherwise); else unsafe. Several reads side by side become one: safe where
they are of one tensor and real, else unsafe, because all must live on one device, as of a comprehension that reads one in
each pass; two that are not surely alike are suggested: the second waits for little, since the first has emptied the queue.
The elements that a loop reads one by one are read before it: safe where it has a pass for each of them, else unsafe, because
all are read, and waited for once, whatever the loop does. `max(t.item(), 1)` can stay a tensor: unsafe, because what needs a
Python number will read it. What is given to Lightning's `self.log` can be the tensor: unsafe, because it keeps its own dtype.
Logging on some passes only, meters that add up on the device, and records that hold tensors until they are written down, are
suggested, not applied: what is written down changes, or what reads it has to.
"""

from __future__ import annotations

import ast

from syncscope.codemod.patterns.reads import known, read_until_true
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.model.heat import IN_AN_ARM
from syncscope.rules import Function, Op, Severity, View

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SEVERITY = Severity.WARNING
OPS = (Op.ITEM, Op.TOLIST, Op.FLOAT, Op.INT, Op.BOOL, Op.COMPLEX, Op.INDEX)
SEEN_AS = ("aten::item", "aten::_local_scalar_dense")
REWRITES = (
    "write_queue_on_device",
    "draw_on_host",
    "write_without_asking",
    "go_through_numbers",
    "read_before_loop",
    "add_up_on_device",
    "read_where_used",
    "collect_on_device",
    "remember_flag",
    "read_list_at_once",
    "read_dict_at_once",
    "read_comprehension_at_once",
    "merge_reads",
    "merge_noted_reads",
    "merge_reads_of_statement",
    "clamp_on_device",
    "keep_on_device",
    "divide_by_tensor",
    "check_number_on_device",
    "log_rarely",
    "give_meter_the_tensor",
    "read_once",
    "give_back_the_tensor",
    "note_the_tensor",
    "hand_on_the_tensor",
    "take_number_of_graphs",
    "ask_every_few_passes",
)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def train(model, loader, optimizer, device):
            total = 0.0
            for x, y in loader:
                loss = F.cross_entropy(model(x.to(device)), y.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()  # !
            return total / len(loader)
        """,
        """
        import torch
        import torch.nn.functional as F

        def train(model, loader, optimizer, device):
            total = 0.0
            for x, y in loader:
                loss = F.cross_entropy(model(x.to(device)), y.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach().float()
            total = float(total)
            return total / len(loader)
        """,
        Safety.UNSAFE,
        "model: model; loader: loader; optimizer: optimizer; device: cpu",
    ),
)


def message(site: Site, view: View) -> str | None:
    if site.op is Op.BOOL and read_until_true(view.function(site), site.node):
        return None
    text = f"{view.quote(site.node)} waits for the device"
    return f"{text} on every pass of the loop" if in_loop(site, view) else text


def in_loop(site: Site, view: View) -> bool:
    """Whether the read stands in a loop of its function, and is made on each of its passes."""
    if site.heat.reason in IN_AN_ARM:
        return False
    if any(
        isinstance(n, COMPREHENSIONS) and not _asked_once(n, site.node) for n in view.function(site).around(site.node)
    ):
        return True
    if site.function is None:
        return site.whole
    loops = view.function(site).every(ast.For, ast.While, ast.AsyncFor)
    return any(n.lineno < site.place.line <= (n.end_lineno or 0) for n in loops)


def _asked_once(comprehension: ast.expr, node: ast.AST) -> bool:
    """Whether an expression stands in what a comprehension goes through, which is computed once."""
    assert isinstance(comprehension, COMPREHENSIONS)
    return any(n is node for n in ast.walk(comprehension.generators[0].iter))


def certain(site: Site, function: Function) -> bool:
    return known(site, function)
