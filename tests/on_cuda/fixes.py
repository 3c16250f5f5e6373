"""How often the examples of the rewrites wait on CUDA, as written and as fixed; prints JSON: a row for each example that runs.

python tests/on_cuda/fixes.py > fixes.json
python tests/on_cuda/fixes.py --table fixes.json > tests/rules/cuda_fixes.txt
python tests/on_cuda/fixes.py read_dict_at_once     these alone; of torch_geometric only where it is installed
"""

import contextlib
import copy
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from on_cuda.examples import moved
from rules.equivalence import arguments, last_function

import syncscope.rewrites
from syncscope.model.example import Example

DRAWS = 8
HEAD = """# How often the examples of each rewrite wait on CUDA, as written and as fixed: {machine}.
#
#   before | after | safety | rewrite, number of the example
#
# The most over some random inputs, as torch's sync debug mode counts them; printed by tests/on_cuda/fixes.py.

"""
MADE = """
import numpy as np, torch
d = torch.device("cuda")
x, y, p = torch.randn(6, 5, device=d), torch.randn(6, 5, device=d), torch.rand(6, 5, device=d) + 0.1
m, n0, ci, pin = x > 0, np.array([0, 2]), torch.tensor([0, 2]), torch.randn(6, 5).pin_memory()
log, wide = [], torch.randn(6, 4, 8, device=d)
linear = torch.nn.Linear(5, 5).to(d)
stepping = torch.optim.SGD(linear.parameters(), 0.1)

class Next(torch.nn.Module):
    def forward(self, tokens):
        return torch.nn.functional.one_hot(tokens, 8).float()

class Divided(torch.nn.Module):
    def forward(self, scores, labels, avg_factor):
        return scores.sum() / avg_factor

class Graphs:
    x, edge_index, y = torch.randn(6, 5, device=d), None, torch.tensor([1, 0], device=d)
    batch, num_graphs = torch.tensor([0, 0, 0, 1, 1, 1], device=d), 2

def whole(model):
    model.conv, model.head = (lambda x, edges: linear(x)), torch.nn.Identity()
    return model
"""
PAIRS = {  # what no example runs: as written, as fixed
    "check_comparison_on_device": (
        "assert torch.equal(x, x.clone())",
        "torch._assert_async((x == x.clone()).all())",
        "suggest",
    ),
    "check_number_on_device": (
        "assert x.sum().item() == x.sum().item()",
        "torch._assert_async(x.sum() == x.sum())",
        "suggest",
    ),
    "check_on_device": ("assert (x == x).all()", "torch._assert_async((x == x).all())", "suggest"),
    "copy_once_after_loop": ("a = [r.cpu() for r in x]", "a = torch.stack(list(x)).cpu()", "unsafe"),
    "copy_without_waiting": ("pin.to(d)", "pin.to(d, non_blocking=True)", "unsafe"),
    "draw_on_host": ("torch.rand(1, device=d).item()", "torch.rand(1).item()", "unsafe"),
    "give_back_the_tensor": ("x.sum().item()", "x.sum().detach()", "suggest"),
    "give_meter_the_tensor": ("log.append(x.sum().item())", "log.append(x.sum().detach())", "suggest"),
    "give_number_to_where": ("torch.where(m, x, torch.tensor(0.0))", "torch.where(m, x, 0.0)", "unsafe"),
    "log_rarely": (
        "for i in range(9): print(end=f'{x.sum():.0f}'[:0])",
        "for i in range(9):\n if i % 50 == 0: x.sum().item()",
        "suggest",
    ),
    "note_the_tensor": ("log.append(x.sum().item())", "log.append(x.sum().detach())", "suggest"),
    "remember_flag": ("any(bool(v) for v in m.any(1))", "m.any(1).any().item()", "unsafe"),
    "send_index_once": ("x[n0], y[n0]", "i = torch.as_tensor(n0, device=d); x[i], y[i]", "unsafe"),
    "send_without_waiting": (
        "torch.tensor([1.0, 2.0], device=d)",
        "torch.tensor([1.0, 2.0]).to(d, non_blocking=True)",
        "unsafe",
    ),
    "take_fixed_number": ("m[:, 0].nonzero()[:2]", "torch.nonzero_static(m[:, 0], size=2)", "suggest"),
}
RUNS = {  # examples that random inputs cannot start: rewrite, number of the example, what calls them
    ("ask_every_few_passes", 0): "generate(Next(), torch.zeros(2, 1, dtype=torch.long, device=d), 7)",
    ("ask_every_few_passes", 1): "solve(p, -1.0)",
    ("drop_shortcut", 0): "loss(x, y, m.float())",
    ("give_number_to_where", 0): "forward(x, m)",
    ("give_number_to_where", 1): "sign(x)",
    ("pass_number_of_graphs", 0): "whole(Net())(Graphs)",
    ("pass_number_of_graphs", 1): "(whole(model), train([Graphs], stepping))",
    ("read_dict_at_once", 1): "everywhere({'a': x.sum(), 'b': y.sum()}, lambda parts: parts)",
    ("read_dict_at_once", 2): "values({'a': x.sum(), 'b': y.sum()})",
    ("copy_index_without_waiting", 0): "forward(x)",
    ("copy_index_without_waiting", 1): "targets(wide.flatten(), len)",
    ("copy_index_without_waiting", 2): "mixed(x, y, 0.5, len)",
    ("divide_by_tensor", 0): "Criterion()({'boxes': x}, y, p.sum()[None], 1)",
    ("draw_without_check", 0): "sample(x, y)",
    ("draw_without_check", 1): "disturbed(x, 0.5)",
    ("take_number_of_graphs", 0): "whole(Net())(Graphs)",
    ("fuse_optimizer", 0): "train(torch.nn.Linear(5, 5).to(d), [(x, y)] * 3)",
    ("hand_on_the_tensor", 0): "Head(Divided()).loss(x, x[:, 0].long())",
    ("keep_on_device", 2): "Margin(1.0).to(d)(x)",
    ("make_index_on_device", 0): "forward(x, torch.zeros(6, dtype=torch.long, device=d))",
    ("register_buffer", 0): "(blur := globals().get('blur') or Blur(1).to(d))(wide[..., None])",
    ("register_constant", 0): "(shift := globals().get('shift') or Normalize([0.5] * 5).to(d))(x)",
    ("switch_off_anomaly_detection", 0): "train(linear, [x] * 3, stepping)",
    ("take_out_empty_cache", 0): "train(linear, [x] * 3, stepping)",
    ("take_out_synchronize", 0): "train(linear, [x] * 3, stepping)",
    ("wait_before_clock", 0): "measure(linear, x)",
    ("write_queue_on_device", 1): "Memory(6, 5).to(d).remember(x[:3])",
}
COUNTED = ("synchronize", "empty_cache")  # of torch.cuda: what waits, and what the debug mode says nothing of
count = 0


def heard(message: object, *_: object, **__: object) -> None:
    global count
    count += "called a synchronizing" in str(message)


def waited(function: Any, drawn: dict[str, Any]) -> int | None:
    """How often one run waits; None where it fails."""
    global count
    given_to = {name: moved(copy.deepcopy(value)) for name, value in drawn.items()}
    torch.cuda.synchronize()
    count = 0
    torch.cuda.set_sync_debug_mode("warn")
    try:
        function(**given_to)
    except Exception as error:
        print(f"fails: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    finally:
        torch.cuda.set_sync_debug_mode(0)
    return count


def measured(example: Example) -> tuple[int, int] | None:
    """The most waits of a run as written, and of the same run as fixed."""
    before, after = (last_function(inspect.cleandoc(code)) for code in (example.code, example.fixed or ""))
    pairs: list[tuple[int, int]] = []

    @settings(
        max_examples=DRAWS, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def go(data: st.DataObject) -> None:
        drawn = data.draw(arguments(example.inputs))
        try:  # on CUDA an index out of bounds would end the context
            before(**copy.deepcopy(drawn))
            after(**copy.deepcopy(drawn))
        except Exception:
            return
        one, other = waited(before, drawn), waited(after, drawn)
        if one is not None and other is not None:
            pairs.append((one, other))

    go()
    return (max(one for one, _ in pairs), max(other for _, other in pairs)) if pairs else None


def of_pairs(names: set[str]) -> list[dict[str, Any]]:
    """The waits of what is written out above, in a second run: the first one builds what it needs."""
    space: dict[str, Any] = {}
    exec(MADE, space)
    rows = []
    for name, (before, after, safety) in PAIRS.items():
        if name not in names:
            continue
        counts = []
        for code in (before, after):
            compiled = compile(code, "<pair>", "exec")
            exec(compiled, space)
            counts.append(waited(lambda compiled=compiled: exec(compiled, space), {}))
        rows.append(
            {"rewrite": name, "example": "written out", "before": counts[0], "after": counts[1], "safety": safety}
        )
    return rows


def of_runs(names: set[str]) -> list[dict[str, Any]]:
    """The waits of examples that are called as written above, in a second run."""
    rows = []
    for (name, number), call in RUNS.items():
        if name not in names:
            continue
        example = syncscope.rewrites.named(name).EXAMPLES[number]
        counts: list[int | None] = []
        for code in (example.code, example.fixed or ""):
            space: dict[str, Any] = {}
            exec(MADE, space)
            try:
                exec(inspect.cleandoc(code), space)
            except ImportError as error:  # of a library that is not installed here
                print(f"{name}: {error}", file=sys.stderr)
                counts.append(None)
                continue
            twice = [waited(lambda space=space, call=call: eval(call, space), {}) for _ in range(2)]
            torch.autograd.set_detect_anomaly(False)
            counts.append(twice[1])
        assert example.safety is not None, (name, number)
        if None in counts:
            print(f"no row: {name}, {number}: {call}", file=sys.stderr)
            continue
        row = {"rewrite": name, "example": number, "before": counts[0], "after": counts[1]}
        rows.append({**row, "safety": example.safety.value})
    return rows


def counting(function: Any) -> Any:
    """This function, whose every call is one wait more."""

    def called(*given_to: Any, **named: Any) -> Any:
        global count
        count += 1
        return function(*given_to, **named)

    return called


def main() -> None:
    if sys.argv[1:2] == ["--table"]:
        said = json.loads(Path(sys.argv[2]).read_text())
        print(HEAD.format(machine=said["machine"]), end="")
        for row in said["rows"]:
            print(f"{row['before']} | {row['after']} | {row['safety']} | {row['rewrite']}, {row['example']}")
        return
    warnings.simplefilter("always")
    torch.set_warn_always(True)
    warnings.showwarning = heard
    for word in COUNTED:
        setattr(torch.cuda, word, counting(getattr(torch.cuda, word)))
    every = sorted(p.stem for p in Path(syncscope.rewrites.__file__).parent.glob("[!_]*.py"))
    names = [name for name in every if not sys.argv[1:] or name in sys.argv[1:]]
    # first what is called: an example below imports `syncscope.kernels`, and with it no backward on CUDA goes
    with contextlib.redirect_stdout(sys.stderr):  # what an example prints is no part of the JSON
        rows = of_runs(set(names))
    rows += of_pairs(set(names))
    for name in names:
        for number, example in enumerate(syncscope.rewrites.named(name).EXAMPLES):
            if not example.fixed or not example.inputs or "_assert_async" in example.fixed or (name, number) in RUNS:
                continue  # an assertion that fails ends CUDA's context
            found = measured(example)
            if found is not None and example.safety is not None:
                row = {"rewrite": name, "example": number, "before": found[0], "after": found[1]}
                rows.append({**row, "safety": example.safety.value})
    machine = f"torch {torch.__version__}, {torch.cuda.get_device_name()}"
    json.dump({"machine": machine, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
