"""Work element by element: one C expression, and a template around it.

The template makes the kernel for each combination of dtypes and layout that is met: broadcast, cast in, compute, cast out. What
is known of a launch is kept by shapes, strides and dtypes, so that the next one costs a dictionary lookup.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyopencl as cl
import torch
from torch.types import Number

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import is_gpu
from syncscope.kernels.memo import Memo
from syncscope.kernels.operators import NotNative
from syncscope.kernels.walks import broadcast_stride, collapse, result_shape

GROUP = (256,)
WIDE = (
    4 if is_gpu else 1
)  # neighbours that an item takes where all tensors are of floats; a CPU's compiler makes its own vectors
_RANKS = (4, 12)  # collapsed dimensions that strided kernels walk: few, because each is a kernel to compile


Operand: TypeAlias = torch.Tensor | float


@dataclass(frozen=True, eq=False, slots=True)
class Pointwise:
    """One expression: tensors and numbers in, one tensor out."""

    name: str
    expression: str
    tensors: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    kind: str = (
        "arithmetic"  # or "floating" (integers are computed in float), "compare" (makes bool), "integer" (no floats)
    )


class Plan(NamedTuple):
    """A launch of which only buffers, offsets and numbers are open."""

    kernel: cl.Kernel
    size: tuple[int, ...]
    tail: tuple[int, ...]
    convert: Callable[[Number], Number]
    layout: storage.Layout | None = None  # of the result, where it is new


HELPERS = (programs.CL / "expressions.cl").read_text()
_plans: Memo[Plan] = Memo()


def storable(dtype: torch.dtype) -> bool:
    """Whether kernels can load and store this dtype."""
    return programs.supported(dtype) or dtype in programs.HALVES


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """What kernels compute in for a dtype in memory.

    Raises:
        NotNative: complex numbers, float8, uint16 and the like.
    """
    if not storable(dtype):
        raise NotNative
    return programs.computed(dtype)


def apply(
    op: Pointwise,
    out: torch.Tensor | None,
    tensors: Sequence[Operand],
    numbers: Sequence[Number] = (),
    dtype: torch.dtype | None = None,
    infer: Callable[[], storage.Layout] | None = None,
) -> torch.Tensor:
    """Runs an expression into `out`, whose shape all inputs broadcast to, or into a new tensor as `infer` says; gives that.

    `tensors` may hold Python numbers and CPU tensors of no dimension, which need no buffer. `dtype` is what to compute in; by
    default what PyTorch's promotion makes of the inputs. `infer` is asked once for each combination of dtypes and layouts.
    """
    if out is None:
        key: list[object] = [op, torch.get_default_dtype(), *map(type, numbers)]
        arguments: list[queue.Argument | None] = [None, 0]
    else:
        key = [op, torch.get_default_dtype(), dtype, out.dtype, out.shape, out.stride()]
        arguments = [storage.buffer(out), out.storage_offset()]
    values: list[tuple[int, Number]] = []
    for x in tensors:
        if isinstance(x, torch.Tensor):
            try:
                arguments.append(x.untyped_storage().lease.buffer)
            except AttributeError:
                if x.dim():
                    raise storage.elsewhere(x) from None
                key.append((x.dtype, "number"))
                values.append((len(arguments), x.item()))
                arguments.append(None)
            else:
                arguments.append(x.storage_offset())
                key += (x.dtype, x.shape, x.stride())
        else:
            key.append(type(x))
            values.append((len(arguments), x))
            arguments.append(None)
    known = tuple(key)
    plan = _plans.get(known)
    if plan is None:
        layout = infer() if infer else None
        plan = _plan(op, layout.make() if layout else out, tensors, dtype)._replace(layout=layout)
        _plans[known] = plan
    if plan.layout is not None:
        out = plan.layout.make()
        arguments[0] = out.untyped_storage().lease.buffer
    if not plan.size:
        return out
    convert = plan.convert
    for at, value in values:
        arguments[at] = convert(value)
    arguments.extend(map(convert, numbers))
    queue.launch(plan.kernel, plan.size, GROUP, *arguments, *plan.tail)
    return out


def _plan(op: Pointwise, out: torch.Tensor, tensors: Sequence[Operand], dtype: torch.dtype | None) -> Plan:
    inside = dtype or promoted(op, tensors)
    compute = compute_dtype(inside)
    if not storable(out.dtype):
        raise NotNative
    buffers = [x for x in tensors if isinstance(x, torch.Tensor) and x.device.type == storage.NAME]
    for x in buffers:
        if not storable(x.dtype) or x.is_conj() or x.is_neg():
            raise NotNative
    if op.kind == "integer" and compute.is_floating_point:
        raise NotNative
    convert = _CONVERT.get(compute) or functools.partial(_wrapped, bits=8 * compute.itemsize, signed=compute.is_signed)
    if not out.numel():
        return Plan(None, (), (), convert)
    layouts = [tuple(out.stride())] + [broadcast_stride(x, out.shape) for x in buffers]
    sizes, strides = collapse(tuple(out.shape), layouts)
    types = [out.dtype] + [
        x.dtype if isinstance(x, torch.Tensor) and any(x is b for b in buffers) else None for x in tensors
    ]
    flat = not sizes or (len(sizes) == 1 and all(s[0] == 1 for s in strides))
    rank = 0 if flat else next(r for r in _RANKS if r >= len(sizes))
    floats = all(t is None or t.is_floating_point for t in types)
    wide = WIDE if floats and (flat or _in_step(sizes, strides, WIDE)) else 1
    word = 16 // out.dtype.itemsize  # what moves as it is moves sixteen bytes at a time
    moves = wide > 1 and op is COPY and types[0] == types[1] and (flat or _in_step(sizes, strides, word))
    wide = word if moves else wide
    source = _source(op, compute, tuple(types), rank, wide, moves)
    kernel = programs.build(source, kernel_name(op, compute))
    count = out.numel()
    tail: list[int] = [count]
    if rank:
        pad = rank - len(sizes)
        tail += [1] * pad + list(sizes)
        for s in strides:
            tail += [0] * pad + list(s)
    return Plan(kernel, (-(-count // (wide * GROUP[0])) * GROUP[0],), tuple(tail), convert)


def _in_step(sizes: Sequence[int], strides: Sequence[Sequence[int]], wide: int) -> bool:
    """Whether `wide` neighbours that begin at a multiple of that lie together in all tensors, at such multiples of theirs."""
    return sizes[-1] % wide == 0 and all(s[-1] == 1 and not any(step % wide for step in s[:-1]) for s in strides)


def _float32(value: Number) -> float:
    x = float(value)
    if (
        -3.4028235677973366e38 < value < 3.4028235677973366e38
    ):  # half a step above the largest float32 rounds to infinity
        return x
    return x if x != x else float("inf") if x > 0 else float("-inf")


def _wrapped(value: Number, bits: int, signed: bool) -> int:
    """A number as an integer of so many bits holds it: as on the CPU, 300 in uint8 is 44."""
    half = 1 << (bits - 1) if signed else 0
    return ((int(value) + half) & ((1 << bits) - 1)) - half


_CONVERT: dict[torch.dtype, Callable[[Number], Number]] = {torch.float32: _float32, torch.float64: float}


def promoted(op: Pointwise, tensors: Sequence[Operand]) -> torch.dtype:
    """The dtype that PyTorch would compute in: masks and conditions do not count."""
    parts = [x for x, name in zip(tensors, op.tensors, strict=True) if name not in ("condition", "mask")]
    dtype = functools.reduce(_promote, parts[1:], _kind(parts[0]))[0]
    if op.kind == "floating" and not (dtype.is_floating_point or dtype.is_complex):
        return torch.get_default_dtype()
    return dtype


def _kind(x: Operand) -> tuple[torch.dtype, Operand]:
    return (x.dtype if isinstance(x, torch.Tensor) else torch.result_type(x, x), x)


def _promote(known: tuple[torch.dtype, Operand], x: Operand) -> tuple[torch.dtype, Operand]:
    """Folds one more operand in, keeping an example operand of the weakest kind that still decides the same."""
    _, example = known
    dtype = torch.result_type(example, x)
    shaped = any(isinstance(t, torch.Tensor) and t.dim() for t in (example, x))
    tensor = any(isinstance(t, torch.Tensor) for t in (example, x))
    if tensor:
        return dtype, torch.empty((1,) if shaped else (), dtype=dtype, device="meta")
    return dtype, example if torch.result_type(example, example) == dtype else x


def kernel_name(op: Pointwise, compute: torch.dtype) -> str:
    """What a trace shows: the operator and what it computes in. The suffix also keeps clear of OpenCL's own functions."""
    return f"{op.name}_{programs.C_TYPE[compute]}"


def load(dtype: torch.dtype, pointer: str, index: str, compute: str) -> str:
    """C that reads one element and casts it."""
    if dtype in programs.HALVES:
        return f"({compute})LOAD_{programs.HALVES[dtype]}({pointer}, {index})"
    return f"({compute}){pointer}[{index}]"


def store(dtype: torch.dtype, pointer: str, index: str, value: str) -> str:
    """C that casts one element and writes it."""
    if dtype in programs.HALVES:
        return f"STORE_{programs.HALVES[dtype]}((float)({value}), {pointer}, {index});"
    if dtype == torch.bool:
        return f"{pointer}[{index}] = ({value}) != 0;"
    return f"{pointer}[{index}] = ({programs.C_TYPE[dtype]})({value});"


def c_storage(dtype: torch.dtype) -> str:
    """The C type of an element in memory."""
    return "ushort" if dtype in programs.HALVES else programs.C_TYPE[dtype]


@functools.cache
def _source(
    op: Pointwise, compute: torch.dtype, types: tuple[torch.dtype | None, ...], rank: int, wide: int = 1,
    moves: bool = False,
) -> str:  # fmt: skip
    """The kernel's C: `types` are the output's and the inputs', None for a number. An item makes or moves `wide` neighbours."""
    t = programs.C_TYPE[compute]
    parameters = [f"__global {c_storage(types[0])} *out", "long out_at"]
    loads = []
    for name, dtype in zip(op.tensors, types[1:], strict=True):
        if dtype is None:
            parameters.append(f"{t} {name}_")
            continue
        parameters += [f"__global const {c_storage(dtype)} *{name}_p", f"long {name}_at"]
        at = f"{name}_at + " + ("i" if not rank else f"{name}_i")
        loads.append(f"    const {t} {name}_ = {load(dtype, name + '_p', at, t)};")
    parameters += [f"{t} {name}_" for name in op.numbers]
    parameters.append("uint total")
    walkers = ["out"] + [name for name, dtype in zip(op.tensors, types[1:], strict=True) if dtype is not None]
    walk = []
    if rank:
        parameters += [f"uint n{d}" for d in range(rank)]
        parameters += [f"int {w}_s{d}" for w in walkers for d in range(rank)]
        walk.append("    uint left = i;")
        walk += [f"    long {w}_i = 0;" for w in walkers]
        for d in reversed(range(rank)):
            if d:
                walk.append(
                    f"    if (n{d} > 1) {{ const uint q = left / n{d}; const long k = left - q * n{d}; left = q;"
                )
            else:
                walk.append("    { const long k = left;")
            walk.append("      " + " ".join(f"{w}_i += k * {w}_s{d};" for w in walkers) + " }")
    at = "out_at + " + ("i" if not rank else "out_i")
    # So an expression reads as its operator is documented. Below it nothing calls what an operand may be named: min, max.
    names = "".join(f"#define {name} {name}_\n" for name in (*op.tensors, *op.numbers))
    head = f"__kernel void {kernel_name(op, compute)}({', '.join(parameters)}) {{"
    floating = int(compute.is_floating_point)
    narrow = "#define OF_HALVES\n" if all(x in programs.HALVES for x in types) else ""
    macros = f"#define T {t}\n#define FLOATING {floating}\n{narrow}{HELPERS}\n{names}"
    if wide > 1:
        return f"{macros}{head}\n{_moved(wide, walk) if moves else _four(op, t, types, walk)}}}\n"
    body = "\n".join(
        [
            head,
            "    const uint i = get_global_id(0);",
            "    if (i >= total) return;",
            *walk,
            *loads,
            f"    {store(types[0], 'out', at, op.expression)}",
            "}",
        ]
    )
    return f"{macros}{body}\n"


def _four(op: Pointwise, t: str, types: tuple[torch.dtype | None, ...], walk: list[str]) -> str:
    """What an item does with four neighbours: read and written at once where they lie so, one by one else."""
    names = [(name, dtype) for name, dtype in zip(op.tensors, types[1:], strict=True) if dtype is not None]
    at = {name: f"{name}_at + {f'{name}_i' if walk else 'i'}" for name in ("out", *(name for name, _ in names))}
    places = " | ".join(["out_at", *(f"{name}_at" for name, _ in names)])
    whole = [f"vstore4({_load4(dtype, f'{name}_p + {at[name]}', t)}, 0, {name}_4);" for name, dtype in names]
    single = [f"{name}_4[j] = {load(dtype, name + '_p', f'{at[name]} + j', t)};" for name, dtype in names]
    return f"""
    const uint i = get_global_id(0) * 4;
    if (i >= total) return;
    {" ".join(walk)}
    const int count = total - i < 4 ? total - i : 4, whole = count == 4 && !(({places}) & 3);
    {t} {", ".join(["made[4]", *(f"{name}_4[4]" for name, _ in names)])};
    if (whole) {{ {" ".join(whole)} }}
    else for (int j = 0; j < count; j++) {{ {" ".join(single)} }}
#pragma unroll
    for (int j = 0; j < 4; j++) {{
        {" ".join(f"const {t} {name}_ = {name}_4[j];" for name, _ in names)}
        made[j] = {op.expression};
    }}
    if (whole) {{ {_store4(types[0], f"out + {at['out']}", "vload4(0, made)")} }}
    else for (int j = 0; j < count; j++) {store(types[0], "out", f"{at['out']} + j", "made[j]")}
"""


def _moved(wide: int, walk: list[str]) -> str:
    """What an item does with so many neighbours that are not changed: one word where they lie so, else one by one."""
    return f"""
    const uint i = get_global_id(0) * {wide};
    if (i >= total) return;
    {" ".join(walk)}
    const uint count = total - i < {wide} ? total - i : {wide};
    const ulong to = out_at + {"out_i" if walk else "i"}, from = self_at + {"self_i" if walk else "i"};
    if (count == {wide} && !((to | from) & {wide - 1}))
        *(__global uint4 *)(out + to) = *(__global const uint4 *)(self_p + from);
    else for (uint j = 0; j < count; j++) out[to + j] = self_p[from + j];
"""


def _load4(dtype: torch.dtype, pointer: str, compute: str) -> str:
    if dtype in programs.HALVES:
        return f"convert_{compute}4(LOAD4_{programs.HALVES[dtype]}({pointer}))"
    return f"convert_{compute}4(*(__global const {programs.C_TYPE[dtype]}4 *)({pointer}))"


def _store4(dtype: torch.dtype | None, pointer: str, value: str) -> str:
    assert dtype is not None
    if dtype in programs.HALVES:
        return f"STORE4_{programs.HALVES[dtype]}(convert_float4({value}), {pointer});"
    return f"*(__global {programs.C_TYPE[dtype]}4 *)({pointer}) = convert_{programs.C_TYPE[dtype]}4({value});"


COPY = Pointwise("copy", "self", ("self",))


def copy(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Copies within the device, broadcasting and casting; the two must not overlap."""
    # Integers pass unchanged through their own type; a float64 source must not pass through float32.
    result: torch.Tensor = apply(COPY, target, (source,), dtype=compute_dtype(source.dtype))
    return result


_WHERE = Pointwise("where", "condition != 0 ? self : other", ("condition", "self", "other"))


def assign_where(mask: torch.Tensor, value: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """`target[mask] = value`, for one value, in place."""
    result: torch.Tensor = apply(_WHERE, target, (mask, value, target), dtype=compute_dtype(target.dtype))
    return result


def layout(op: Pointwise, tensors: Sequence[Operand]) -> storage.Layout:
    """What an expression wants to make: broadcast shape, promoted dtype, and the first input's layout if it is dense."""
    shape = result_shape(tensors)
    dtype = torch.bool if op.kind == "compare" else promoted(op, tensors)
    for x in tensors:
        if isinstance(x, torch.Tensor) and x.shape == shape and x.device.type == storage.NAME:
            if x.is_contiguous():
                break
            return storage.Layout.of(torch.empty_like(x, dtype=dtype, device="meta"))
    return storage.Layout.of(torch.empty(shape, dtype=dtype, device="meta"))
