"""Does a program see that it is recorded? The same calls inside and outside, compared bit for bit.

    python benchmarks/transparency.py                 everything: some minutes a mode
    python benchmarks/transparency.py --samples 1     fewer of PyTorch's own operator samples
    python benchmarks/transparency.py --modes dry     trace, watch, forbid, dry; cpu, ocl: `syncscope run --device`

Compared are PyTorch's operator samples (values, dtypes, strides, gradients, errors, warnings), the calls of
`calls/` and the programs of `transparency_programs.py`. Each mode runs in a process of its own, inside first, so
that what torch does once in a process happens there; then outside again, to see that nothing is left. It is held against
processes without any recording, with the device `ocl` imported where the mode has it. What differs among these is not compared,
nor what nobody says is the same twice: memory that is not written, and least squares of LAPACK, rounded by where memory lies.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from transparency_outcomes import Outcomes, state

HERE = Path(__file__).parent
CALLS = HERE / "calls"
GROUPS = ("creation", "arrays", "indexing", "dunders", "methods")
MODES = ("trace", "watch", "forbid", "dry", "cpu", "ocl")
# operators whose values are whatever lay there, or depend on where it lies
UNSAID = "empty", "new_empty", "linalg_lstsq"
DECLARED = {  # what differs in a dry run or under --device, and has to
    "methods: t.cpu() is t": "a copy on the host is another tensor than the one on the device",
    "program: graph breaks": "nothing is compiled, for compiled code has no lines",
    "methods: traceback_of(lambda: torch.unique": "torch's own frames of a mode around its functions in Python",
    "operator: jiterator": "torch.cuda says yes under --device, and torch then asks for the compiler of a GPU",
    "program: compile where": "torch.cuda says yes under --device, and what torch's compiler then imports for GPUs warns",
    'methods: traceback_of(lambda: f"{x:.2f}")': "torch's own frames of a mode around its functions in Python",
    "methods: traceback_of(lambda: x.sum().backward())": "torch's own frames of a mode around its functions in Python",
}


@contextlib.contextmanager
def mode(name: str) -> Iterator[None]:
    """The block that a mode is."""
    import syncscope

    if name.startswith("nothing"):
        yield
    elif name == "trace":
        with syncscope.trace():
            yield
    elif name == "watch":
        with syncscope.watch():
            yield
    elif name == "forbid":
        with syncscope.forbid_syncs(dry=False):
            yield
    elif name == "dry":
        with syncscope.watch(dry=True):
            yield
    else:
        from syncscope.tracers import redirect
        from syncscope.tracers.session import Session

        with redirect.to(name), Session():
            yield


# ---- the calls ----


def people(outcomes: Outcomes, every: int) -> None:
    """Calls, one a line, each with fresh values; then programs."""
    import transparency_programs as programs

    values = compile((CALLS / "values.txt").read_text(), "<values>", "exec")
    for group in GROUPS:
        for line in (CALLS / f"{group}.txt").read_text().splitlines()[::every]:
            code = compile(line, "<call>", "eval")

            def run(code: Any = code) -> Any:
                names: dict[str, Any] = dict(vars(programs))
                exec(values, names)
                return eval(code, names)

            outcomes.call(f"{group}: {line}", run)
    for name, program in list(programs.PROGRAMS.items())[::every]:
        outcomes.call(f"program: {name}", program)


def operators(outcomes: Outcomes, samples: int, every: int) -> None:
    """PyTorch's own samples: as many of each operator, in the types that it takes of these."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    for number, op in enumerate(op_db[::every]):
        for dtype in (torch.float32, torch.int64, torch.complex64):
            if dtype not in op.supported_dtypes("cpu"):
                continue
            grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
            torch.manual_seed(number)
            try:
                given = list(_first(op.sample_inputs("cpu", dtype, requires_grad=grad), samples))
            except Exception:  # a sample that cannot be made here
                outcomes.unmade += 1
                continue
            for at, sample in enumerate(given):
                outcomes.call(f"operator: {op.formatted_name} {dtype} {at}", partial(applied, op, sample, grad))
        try:
            refused = list(_first(op.error_inputs("cpu") if op.error_inputs_func else (), samples))
        except Exception:
            outcomes.unmade += 1
            continue
        for at, wrong in enumerate(refused):
            outcomes.call(f"operator: {op.formatted_name} wrong {at}", partial(applied, op, wrong.sample_input, False))


def _first(values: Any, count: int) -> Iterator[Any]:
    for at, value in enumerate(values):
        if at >= count:
            return
        yield value


def applied(op: Any, sample: Any, grad: bool) -> Any:
    import torch

    result = op(sample.input, *sample.args, **sample.kwargs)
    if not grad:
        return result
    made = [r for r in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(r, torch.Tensor)]
    made = [r for r in made if r.requires_grad]
    leaves = [
        v
        for v in torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        if isinstance(v, torch.Tensor)
    ]
    leaves = [v for v in leaves if v.requires_grad]
    if not made or not leaves:
        return result
    total = sum(r.abs().sum() if r.is_complex() else r.sum() for r in made)
    return result, torch.autograd.grad(total, leaves, allow_unused=True)


# ---- the processes ----


def child(name: str, samples: int, every: int, out: str) -> None:
    if name.endswith("ocl"):
        import syncscope.kernels  # noqa: F401  (what it registers stays, recording or not)
    import torch
    import transparency_programs  # noqa: F401  (its classes are no leavings)

    torch.set_num_threads(1)
    before = state()
    inside, after = Outcomes(), Outcomes()
    with mode(name):
        people(inside, every)
        if samples:
            operators(inside, samples, every)
    inside.describe()
    left = {key: value for key, value in state().items() if key in before and before[key] != value}
    people(after, every)
    after.describe()
    undescribed = inside.undescribed + after.undescribed
    found = {"inside": inside.said, "after": after.said, "left": sorted(left)}
    Path(out).write_text(json.dumps(found | {"undescribed": undescribed, "unmade": inside.unmade}))


def run(name: str, samples: int, every: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [
            sys.executable,
            __file__,
            "--child",
            name,
            "--out",
            str(out),
            f"--samples={samples}",
            f"--every={every}",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": "0"}
        )
        if not out.exists():
            raise SystemExit(f"{name}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        return dict(json.loads(out.read_text()))


def outside(kind: str, samples: int, every: int) -> tuple[dict[str, Any], set[str]]:
    """What a process without a recording says, and the calls of which another says the same."""
    reference, again = (run(kind, samples, every) for _ in range(2))
    first, later = reference["inside"], reference["after"]
    unsaid = tuple(f"operator: {name}" for name in UNSAID)
    stable = {call for call in first if first[call] == again["inside"].get(call) and not call.startswith(unsaid)}
    stable -= {call for call in later if later[call] != again["after"].get(call)}
    unwritten = sum(call.startswith(unsaid) for call in first)
    unstable = len(first) - len(stable) - unwritten
    print(
        f"{kind}: {len(first):,} calls. Left out: {unwritten} of {', '.join(UNSAID)}, and {unstable} others that two processes "
        f"without a recording do not answer alike; besides, {reference['undescribed']} results have no words, and "
        f"{reference['unmade']} sets of samples cannot be made here",
        flush=True,
    )
    return reference, stable


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--samples", type=int, default=8, help="of each operator and type; 0: none")
    parser.add_argument("--every", type=int, default=1, help="every so-manieth call and operator only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.samples, options.every, options.out)
        return 0
    wrong = 0
    references: dict[str, tuple[dict[str, Any], set[str]]] = {}
    for name in options.modes.split(","):
        kind = "nothing, with ocl" if name == "ocl" else "nothing"
        if kind not in references:
            references[kind] = outside(kind, options.samples, options.every)
        reference, stable = references[kind]
        first, later = reference["inside"], reference["after"]
        found = run(name, options.samples, options.every)
        inside = {call: said for call, said in found["inside"].items() if call in stable}
        after = {call: said for call, said in found["after"].items() if call in stable}
        inside |= dict.fromkeys(sorted(stable - inside.keys()), "nothing that can be described")
        different = [call for call in inside if inside[call] != first[call]]
        reasons = {
            call: why
            for call in different
            for beginning, why in DECLARED.items()
            if name in ("dry", "cpu", "ocl") and call.startswith(beginning)
        }
        different = [call for call in different if call not in reasons]
        after |= dict.fromkeys(sorted((stable & later.keys()) - after.keys()), "nothing that can be described")
        remaining = [call for call in after if after[call] != later.get(call)]
        found["left"] = sorted(set(found["left"]) - set(reference["left"]))
        print(
            f"{name}: {len(inside):,} compared inside, {len(different)} differ"
            f"{f' and {len(reasons)} have to' if reasons else ''}; {len(after):,} afterwards, "
            f"{len(remaining)} differ; {len(found['left'])} pointers and attributes left",
            flush=True,
        )
        for why, count in Counter(reasons.values()).most_common():
            print(f"    {count} have to: {why}")
        for call in different:
            print(f"    {call}\n        outside {first[call]}\n        inside  {inside[call]}")
        for call in set(remaining) - set(different):
            print(f"    afterwards {call}\n        before {later.get(call)}\n        after  {after[call]}")
        for left in found["left"]:
            print(f"    left: {left}")
        wrong += len(different) + len(remaining) + len(found["left"])
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
