"""Work over lists of tensors, such as all parameters of a network: one C statement, and a few launches for all of them.

A kernel has slots, each with a pointer per list; how many depends on what the device takes as arguments. A row of work-groups
serves a slot.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.device import device, is_gpu
from syncscope.kernels.elementwise import HELPERS
from syncscope.kernels.operators import NotNative

_BLOCK = 1024 if is_gpu else 4096  # neighbouring elements that a work-group takes at a time
_GROUPS = 8 * int(device.max_compute_units)  # of work-groups for one slot at most
PARTS = 64 if is_gpu else 4  # sums that are left of each tensor
_ARGUMENTS = min(int(device.max_parameter_size), 4096) - 128  # bytes, without those that slots share


@dataclass(frozen=True, slots=True)
class Listwise:
    """One statement for element `i` of the tensors of a slot; `x` is the pointer of a list `x`, from its first element on.

    `lists`, `shared` and `common` name pointers, the last two the same for all slots: to elements as they lie in memory, for
    LOAD and STORE, but `common` to such as are computed in (T). `each` and `numbers` are of type T, of a slot or of all;
    `sizes` are unsigned integers of a slot. `statistics` are lists of floats, whatever T is. `setup` comes before the loop.
    """

    name: str
    statement: str
    lists: tuple[str, ...]
    each: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    setup: str = ""
    sums: bool = (
        False  # the statement adds to `sum`; each work-group leaves its own in `parts`, in line `row` of a slot
    )
    helpers: str = ""

    def slots(self, width: int) -> int:
        """How many fit into the arguments of one launch, of a T of so many bytes."""
        pointers = 12 * (len(self.lists) + len(self.statistics))
        return max(_ARGUMENTS // (pointers + width * len(self.each) + 4 * len(self.sizes) + 4), 1)


@functools.cache
def _source(what: Listwise, dtype: torch.dtype, slots: int, group: int) -> str:
    macros = programs.elements(dtype)
    t = macros["T"]
    pointers = [(name, "S") for name in what.lists] + [(name, "float") for name in what.statistics]
    parameters, cases = [], []
    for k in range(slots):
        parameters += [text for name, c in pointers for text in (f"__global {c} *{name}{k}", f"uint {name}{k}_at")]
        parameters += [f"{t} {name}{k}" for name in what.each] + [f"uint {name}{k}" for name in what.sizes]
        parameters.append(f"uint count{k}")
        chosen = [f"{name} = {name}{k} + {name}{k}_at;" for name, _ in pointers]
        chosen += [f"{name} = {name}{k};" for name in (*what.each, *what.sizes, "count")]
        cases.append(f"        case {k}: {' '.join(chosen)} break;")
    for name in (*what.shared, *what.common):
        parameters += [f"__global {'S' if name in what.shared else t} *{name}", f"uint {name}_at"]
    parameters += [f"{t} {name}" for name in what.numbers]
    variables = [f"__global {c} *{name};" for name, c in pointers]
    variables += [f"{t} {name};" for name in what.each] + [f"uint {name};" for name in (*what.sizes, "count")]
    teams = f"#define GROUP {group}\n#define LANES GROUP\n#define V 1\n{programs.text('rows')}" if what.sums else ""
    return "\n".join(
        [
            *(f"#define {key} {value}" for key, value in macros.items()),
            f"{teams}#define FLOATING {int(t in ('float', 'double'))}\n{HELPERS}\n{what.helpers}",
            f"__kernel void {what.name}_{t}({', '.join(parameters)}) {{",
            "    " + " ".join(variables),
            "    switch (get_group_id(1)) {",
            *cases,
            "        default: return;",
            "    }",
            *(f"    {name} += {name}_at;" for name in (*what.shared, *what.common)),
            f"    {what.setup}",
            "    WIDE kept = 0;" if what.sums else "",
            f"    for (uint block = get_group_id(0) * {_BLOCK}; block < count; block += get_num_groups(0) * {_BLOCK}) {{",
            f"        const uint end = min(block + {_BLOCK}u, count);",
            (_SUMMED if what.sums else _DONE).replace("STATEMENT", what.statement),
            "    }",
            _LEFT if what.sums else "",
            "}",
        ]
    )


_DONE = "        for (uint i = block + get_local_id(0); i < end; i += get_local_size(0)) { STATEMENT }"
# Eight sums, as an addition need not wait for the one before then.
_SUMMED = """
        T sums[8] = {0};
        uint k = block + get_local_id(0);
        for (; k + 7 * get_local_size(0) < end; k += 8 * get_local_size(0))
#pragma unroll
            for (int j = 0; j < 8; j++) { const uint i = k + j * get_local_size(0); T sum = sums[j]; STATEMENT sums[j] = sum; }
        for (; k < end; k += get_local_size(0)) { const uint i = k; T sum = sums[0]; STATEMENT sums[0] = sum; }
        for (int j = 0; j < 8; j++) kept += sums[j];"""
_LEFT = """    __local T all[GROUP];
    const T sum = team_sum(kept, all);
    if (LANE == 0) parts[row * get_num_groups(0) + get_group_id(0)] = sum;"""


def run(
    what: Listwise,
    lists: Sequence[Sequence[Tensor]],
    each: Sequence[Sequence[Number]] = (),
    numbers: Sequence[Number] = (),
    shared: Sequence[Tensor] = (),
    common: Sequence[Tensor] = (),
    sizes: Sequence[Sequence[int]] = (),
    counts: Sequence[int] | None = None,
    turns: int = 1,
) -> None:
    """Enqueues the statement for every element of the first list's tensors (or the first `counts` of them), in `turns` layers
    of work-groups.

    The lists are those of `what.lists` and then of `what.statistics`; all tensors of the former have one dtype.

    Raises:
        NotNative: tensors that are not row-major, of several dtypes, or of one that kernels do not compute in.
    """
    if not lists or not lists[0]:
        return
    dtype = lists[0][0].dtype
    inside = programs.computed(dtype)
    if (
        not programs.supported(inside)
        or any(x.dtype != dtype for x in shared)
        or any(x.dtype != inside for x in common)
    ):
        raise NotNative
    alike = len(what.lists)
    slots = []
    for k, tensors in enumerate(zip(*lists, strict=True)):
        arguments: list[queue.Argument] = []
        for x in tensors:
            if not x.is_contiguous():
                raise NotNative
            try:
                arguments.append(x.untyped_storage().lease.buffer)
            except AttributeError:  # on another device
                raise NotNative from None
            arguments.append(x.storage_offset())
        if any(x.dtype != dtype for x in tensors[:alike]):
            raise NotNative
        arguments += [numbers_of_slot[k] for numbers_of_slot in (*each, *sizes)]
        slots.append((arguments, tensors[0].numel() if counts is None else counts[k]))
    rest = [a for x in (*shared, *common) for a in (storage.buffer(x), x.storage_offset())] + list(numbers)
    width = what.slots(inside.itemsize)
    t = programs.C_TYPE[inside]
    for first in range(0, len(slots), width):
        part = slots[first : first + width]
        largest = max(count for _, count in part)
        if not largest:
            continue
        room = 8 if len(part) <= 8 else width
        filler = part[0][0], 0
        flat = [a for arguments, count in part + [filler] * (room - len(part)) for a in (*arguments, count)]
        groups = PARTS if what.sums else min(-(-largest // _BLOCK), _GROUPS)
        kernel = programs.build(_source(what, dtype, room, programs.GROUP), f"{what.name}_{t}")
        queue.launch(kernel, (groups * programs.GROUP, len(part), turns), (programs.GROUP, 1, 1), *flat, *rest)
