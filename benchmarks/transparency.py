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
import ctypes
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
CALLS = HERE / "calls"
GROUPS = ("creation", "arrays", "indexing", "dunders", "methods")
MODES = ("trace", "watch", "forbid", "dry", "cpu", "ocl")
UNSAID = (
    "empty",
    "new_empty",
    "linalg_lstsq",
)  # operators whose values are whatever lay there, or depend on where it lies
DECLARED = {  # what differs in a dry run or under --device, and has to
    "methods: t.cpu() is t": "a copy on the host is another tensor than the one on the device",
    "program: graph breaks": "nothing is compiled, for compiled code has no lines",
    "methods: traceback_of(lambda: torch.unique": "torch's own frames of a mode around its functions in Python",
    "operator: jiterator": "torch.cuda says yes under --device, and torch then asks for the compiler of a GPU",
    "program: compile where": "torch.cuda says yes under --device, and what torch's compiler then imports for GPUs warns",
    'methods: traceback_of(lambda: f"{x:.2f}")': "torch's own frames of a mode around its functions in Python",
    "methods: traceback_of(lambda: x.sum().backward())": "torch's own frames of a mode around its functions in Python",
}
SHOWN = 200  # characters of an outcome


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


# ---- what came of a call, in words that mean the same in another process ----


def described(value: Any, deep: int = 0) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return _tensor(value, deep)
    if isinstance(value, np.ndarray):
        return [
            "array",
            str(value.dtype),
            value.shape,
            value.strides,
            [repr(v) for v in value.ravel().tolist()[:10000]],
        ]
    if deep > 5:
        return type(value).__name__
    if isinstance(value, dict):
        return [type(value).__name__, [[described(k, deep + 1), described(v, deep + 1)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)) or type(value).__name__ in ("dict_keys", "odict_keys"):
        return [type(value).__name__, [described(v, deep + 1) for v in value]]
    if isinstance(value, torch.nn.Module):
        return [type(value).__name__, described(value.state_dict(), deep + 1)]
    return [type(value).__name__, plain(repr(value))]


def plain(text: str) -> str:
    """Without addresses and names of temporary things."""
    return re.sub(r"0x[0-9a-f]+|/tmp/\S+|(?<=id=)\d+", "...", text)


def _tensor(value: Any, deep: int) -> Any:
    import torch

    said = [
        type(value).__name__,
        str(value.dtype),
        list(value.shape),
        value.requires_grad,
        value.is_leaf,
        str(value.layout),
    ]
    said.append(str(value.device))
    said.append(sorted(vars(value)))
    if value.is_leaf and value.grad is not None:
        said.append(described(value.grad, deep + 1))
    plain_type = type(value).__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl
    if value.is_meta or not plain_type:
        return said
    value = value.detach()
    if value.is_sparse:
        value = value.coalesce()
        return [*said, described(value.indices(), deep + 1), described(value.values(), deep + 1)]
    if value.layout is not torch.strided or value.is_nested:
        return said
    value = value.as_subclass(torch.Tensor)
    said.append(list(value.stride()))
    if value.is_quantized:
        value = value.int_repr()
    value = value.resolve_conj().resolve_neg().cpu().flatten().clone(memory_format=torch.contiguous_format)
    said.append(hashlib.sha1(value.view(torch.uint8).numpy().tobytes() if value.numel() else b"").hexdigest())
    return [*said, value[:4].tolist()]


class Outcomes:
    """Calls and what came of them."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Any, ...]] = {}
        self.said: dict[str, str] = {}
        self.undescribed = self.unmade = 0

    def call(self, name: str, function: Callable[[], Any]) -> None:
        """Calls, and notes the result, or what it raised, and the warnings."""
        import torch

        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                result: Any = ("gave", function())
            except Exception as error:
                result = ("raised", type(error).__name__, plain(str(error)))
        self._found[name] = (result, [(w.category.__name__, plain(str(w.message))) for w in heard])

    def describe(self) -> None:
        """In words, once the block has been left."""
        for name, (result, heard) in self._found.items():
            try:
                words = described(result)
            except Exception:  # not compared, and counted: what has no words would be equal to anything
                self.undescribed += 1
                continue
            text = json.dumps([words, sorted(set(heard))], default=repr)
            self.said[name] = f"{hashlib.sha1(text.encode()).hexdigest()[:12]} {text[:SHOWN]}"
        self._found.clear()


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
                outcomes.call(
                    f"operator: {op.formatted_name} {dtype} {at}", lambda o=op, s=sample, g=grad: applied(o, s, g)
                )
        try:
            refused = list(_first(op.error_inputs("cpu") if op.error_inputs_func else (), samples))
        except Exception:
            outcomes.unmade += 1
            continue
        for at, wrong in enumerate(refused):
            outcomes.call(
                f"operator: {op.formatted_name} wrong {at}", lambda o=op, w=wrong: applied(o, w.sample_input, False)
            )


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


# ---- what a program could find left ----


def state() -> dict[str, Any]:
    """Every pointer and attribute that a recording might have touched."""
    import torch

    word = lambda address: ctypes.c_uint64.from_address(address).value  # noqa: E731
    found: dict[str, Any] = {}
    owners = {
        "Tensor": torch.Tensor,
        "TensorBase": torch._C.TensorBase,
        "functions": torch._C._VariableFunctions,
        "nn": torch._C._nn,
        "engine": torch._C._ImperativeEngine,
        "torch": torch,
        "torch._C": torch._C,
        "functional": torch.nn.functional,
        "Module": torch.nn.Module,
        "cuda": torch.cuda,
        "record_function": torch.autograd.profiler.record_function,
        "autograd": torch.autograd,
        "_tensor_str": torch._tensor_str,
        "amp": torch.amp,
        "os": os,
    }
    for owner, value in owners.items():
        names = getattr(value, "__dict__", None) or vars(type(value))
        for name in list(names):
            item = getattr(value, name) if owner == "functions" else names[name]
            if type(item).__name__ == "method-wrapper":
                continue  # made anew each time that it is asked for
            found[f"{owner}.{name}"] = id(item)
            kind = type(item).__name__
            if kind == "method_descriptor":
                found[f"{owner}.{name} in C"] = word(word(id(item) + 40) + 8)
            elif kind == "builtin_function_or_method":
                found[f"{owner}.{name} in C"] = word(word(id(item) + 16) + 8)
            elif kind == "wrapper_descriptor":
                found[f"{owner}.{name} in C"] = word(id(item) + 48)
    for kind in (*family(torch._C.TensorBase), torch.device, torch.Generator):
        slots = [word(id(kind) + at) for at in (48, 88, 120, 128, 136, 144, 152, 160, 200, 208, 216, 296, 312)]
        for table, size in ((96, 36), (104, 10), (112, 3)):
            address = word(id(kind) + table)
            slots += [word(address + 8 * at) for at in range(size)] if address else []
        found[f"slots of {kind.__module__}.{kind.__qualname__}"] = slots
    found["sys.meta_path"] = [id(finder) for finder in sys.meta_path]
    found["warnings"] = type(warnings.filters).__name__, id(warnings._showwarnmsg)
    found["modes"] = torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    return found


def family(kind: type) -> Iterator[type]:
    yield kind
    for child in type.__subclasses__(kind):
        yield from family(child)


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
