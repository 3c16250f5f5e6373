"""PyTorch's own samples of every native operator, run on the device and on the CPU: `python tests/kernels/sweep.py` counts.

Which samples belong to an operator is seen, not declared: the queue's observers say which operators ran natively. So the
table below only says which of PyTorch's sample sets to run, and an operator that none of them reaches fails the test.
"""

from __future__ import annotations

import functools
import random
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from counts import summary, unreached
from known_gaps import GAPS

from syncscope.kernels import generator, operators, queue

if TYPE_CHECKING:  # PyTorch's tables take three seconds, which who only collects tests does not have
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

SAMPLES = 4  # of each set; the first ones are PyTorch's plainest, and cover scalars, broadcasting and strides
TOLERANCE = 1e-4
LOOSE = False  # of dtypes too: in half precision the CPU keeps statistics in half, and the device, as CUDA, in float32

# Sample sets that reach a native operator under another name.
OTHERS = """
    nn.functional.group_norm nn.functional.prelu
    nn.functional.conv1d nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.cross_entropy
    nn.functional.nll_loss nn.functional.batch_norm nn.functional.layer_norm nn.functional.max_pool2d
    nn.functional.adaptive_avg_pool2d nn.functional.embedding nn.functional.dropout nn.functional.linear
    nn.functional.interpolate nn.functional.logsigmoid nn.functional.scaled_dot_product_attention unique sort topk
    masked_select masked_scatter index_put __getitem__ softmax log_softmax var_mean std var count_nonzero norm
    linalg.vector_norm where masked_fill view_as_complex uniform normal bernoulli zeros ones full arange linspace
    tril_indices triu_indices to clone contiguous
"""

# Integers are computed in kernels of their own: the operators for which that matters.
INTEGERS = """
    add sub mul floor_divide remainder fmod pow maximum clamp eq bitwise_and bitwise_left_shift sum prod amax argmax
    sort unique cumsum nonzero __getitem__ gather where cat mm
"""

# They reach only what others reach: where time is short the first sample of each will do.
REPEATS = """
    nn.functional.conv1d nn.functional.conv_transpose2d nn.functional.linear nn.functional.scaled_dot_product_attention
    bmm.triton_optimized softmax.with_dtype log_softmax.with_dtype min.binary min.reduction_no_dim max.reduction_no_dim
    norm.inf norm.fro div.floor_rounding div.trunc_rounding masked.logaddexp
"""

SKIPPED = {
    "empty": "content undefined", "empty_like": "content undefined", "new_empty": "content undefined",
    "empty_strided": "content undefined", "new_empty_strided": "content undefined", "empty_permuted": "content undefined",
}  # fmt: skip


@dataclass
class Count:
    """What a sweep saw."""

    sets: int = 0
    samples: int = 0
    gradients: int = 0
    native: set[str] = field(default_factory=set)

    def packed(self) -> dict[str, Any]:
        """As plain values, to travel between processes, with what there is to be seen: who prints need not import torch."""
        there = {
            "all_sets": len(chosen()) - len(GAPS),
            "reachable": sorted(_swept()),
            "operators": number_of_native(),
            "overloads": len(operators.native) + len(operators.views),
            "gaps": len(GAPS),
        }
        return {**asdict(self), "native": sorted(self.native), **there}


COUNT = Count()  # of this process
# Reached by tests of their own: PyTorch has no samples of them, skips them on the CPU, or has plainer ones first.
ELSEWHERE = {
    "_fused_sgd_", "_fused_adam_", "_fused_adamw_", "_thnn_fused_gru_cell", "_thnn_fused_gru_cell_backward",
    "_thnn_fused_lstm_cell", "_thnn_fused_lstm_cell_backward_impl", "_copy_from_and_resize", "random_", "randperm",
    "bernoulli", "relu_", "hardtanh_", "hardswish_", "floor_divide_", "gelu_", "index_copy_", "nansum", "range",
    "silu_backward", "set_", "resize_", "upsample_nearest2d", "upsample_nearest2d_backward", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact2d_backward", "_native_batch_norm_legit", "_amp_foreach_non_finite_check_and_unscale_",
    "_weight_norm_interface", "_weight_norm_interface_backward", "_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward",
    "_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward", "_amp_update_scale_", "rrelu_with_noise",
    "_scaled_dot_product_fused_attention_overrideable",
    "_native_multi_head_attention", "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned",
    "_transformer_encoder_layer_fwd", "adaptive_max_pool2d", "bucketize", "col2im", "im2col", "norm", "reflection_pad1d",
    "reflection_pad1d_backward", "replication_pad1d", "replication_pad1d_backward", "reflection_pad2d",
    "reflection_pad2d_backward", "reflection_pad3d", "reflection_pad3d_backward", "replication_pad2d",
    "replication_pad2d_backward", "replication_pad3d", "replication_pad3d_backward", "searchsorted",
    "_scaled_dot_product_fused_attention_overrideable_backward",
}  # fmt: skip


def name(info: OpInfo) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def number_of_native() -> int:
    """With in-place forms counted as their operator."""
    return len({name.strip("_") for name in native_names()})


def native_names() -> set[str]:
    """Operators by their base names: `add` for `add.out` and `add_`."""
    return {overload.partition(".")[0] for overload in (*operators.native, *operators.views)}


def _swept() -> set[str]:
    """Native operators that PyTorch's samples reach; observers hear nothing of views."""
    heard = {overload.partition(".")[0] for overload in operators.native}
    return {name for name in heard - ELSEWHERE if not name.startswith("_foreach_")}


def bases() -> set[str]:
    """Names by which a sample set is chosen: its operator's, with its module or without, or that of what it is made of."""
    return {name.strip("_") for name in native_names()} | set(OTHERS.split())


def chosen() -> list[tuple[OpInfo, torch.dtype]]:
    """The sample sets to run, with the dtype to run them in."""
    return [case for cases in by_base().values() for case in cases]


@functools.cache
def by_base() -> dict[str, list[tuple[OpInfo, torch.dtype]]]:
    """The same by the first of `bases` that they have. PyTorch has no samples of some."""
    from torch.testing._internal.common_methods_invocations import op_db

    known, integers = bases(), INTEGERS.split()
    cases: dict[str, list[tuple[OpInfo, torch.dtype]]] = {}
    for info in op_db:
        names = (info.name, info.name.rpartition(".")[2], info.aten_name)
        base = next((one for one in names if one in known), None)
        if base is None or info.name in SKIPPED:
            continue
        on_cpu = info.supported_dtypes("cpu")
        dtypes = [torch.float32] if torch.float32 in on_cpu else []
        if torch.int64 in on_cpu and (not dtypes or info.name in integers):
            dtypes.append(torch.int64)
        cases.setdefault(base, []).extend((info, dtype) for dtype in dtypes)
    return cases


def to_device(value: Any) -> Any:
    """The same value with its tensors (detached, still asking for gradients) and devices on `ocl`."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("ocl").requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
        return torch.device("ocl")
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(to_device, value))
    if isinstance(value, dict):
        return {key: to_device(v) for key, v in value.items()}
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(v)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def seed(number: int) -> None:
    """As `torch.manual_seed`, which notes its caller's whole stack for each kind of device that is not there."""
    torch.default_generator.manual_seed(number)
    torch.ocl.manual_seed_all(number)


def samples(info: OpInfo, dtype: torch.dtype, most: int) -> list[SampleInput]:
    """The first of a set, as `info.sample_inputs` gives them; it looks for a unittest in the whole stack, for longer."""
    from torch.testing._internal.common_utils import SEED

    grad = dtype.is_floating_point and info.supports_autograd
    seed(0)
    made = iter(info.sample_inputs_func(info, "cpu", dtype, grad))
    found: list[SampleInput] = []
    while len(found) < most:
        seed(SEED)
        random.seed(SEED)
        np.random.seed(SEED)
        if (sample := next(made, None)) is None:
            break
        found.append(sample)
    return found


def check(info: OpInfo, sample: SampleInput, count: Count) -> None:
    """Runs one sample on both; results agree, and so do gradients where there are any."""
    outcomes = []
    for move in (lambda x: x, to_device):
        inputs = move([sample.input, list(sample.args), sample.kwargs])
        seed(1)
        results = list(tensors(info(inputs[0], *inputs[1], **inputs[2])))
        # What is undefined or a choice of the operator (which of equals) never gets a gradient in PyTorch's samples.
        roots = [r for r in results if r.requires_grad and r.grad_fn is not None and r.is_floating_point()]
        leaves = [t for t in tensors(inputs) if t.requires_grad]
        if roots and leaves:
            seeds = [move(torch.linspace(0.5, 1.5, r.numel()).reshape(r.shape).to(r.dtype)) for r in roots]
            gradients = torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
            results += [g for g in gradients if g is not None]
            count.gradients += sum(g is not None for g in gradients) if move is to_device else 0
        outcomes.append([r.detach() for r in results])
    expected, got = outcomes
    count.samples += 1
    assert len(expected) == len(got)
    for a, b in zip(expected, got, strict=True):
        assert b.device.type == "ocl", b.device
        close(b, a)


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(
        got.cpu(), expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True, check_dtype=not LOOSE
    )


def in_place(info: OpInfo, sample: SampleInput) -> bool:
    """Whether the sample has an in-place form on the CPU; it leaves the same on `ocl`."""
    if info.inplace_variant is None or not isinstance(sample.input, torch.Tensor):
        return False
    left = []
    for move in (lambda x: x, to_device):
        first, args, kwargs = move([sample.input.detach().clone(), list(sample.args), sample.kwargs])
        seed(1)
        try:
            with torch.no_grad():
                info.inplace_variant(first, *args, **kwargs)
        except (RuntimeError, TypeError):
            if left:
                raise
            return False  # its result has another shape or dtype
        left.append(first)
    close(left[1], left[0])
    return True


def kind(sample: SampleInput) -> tuple[Hashable, ...]:
    """What a kernel may get wrong in a sample, and not in others: nothing to compute, one number, one that is spread over
    others, and tensors that do not lie as they are counted; and what decides which kernel it is."""
    given = list(tensors([sample.input, list(sample.args), sample.kwargs]))
    asked = [one for arg in sample.args for one in (arg if isinstance(arg, tuple) else (arg,))]
    return (
        frozenset(
            (key, str(value) if isinstance(value, bool | float | str) else "") for key, value in sample.kwargs.items()
        ),
        frozenset(map(type, asked)),
        frozenset(x.dtype for x in given),
        max((x.dim() for x in given), default=0) > 2,
        any(x.numel() == 0 for x in given),
        any(x.dim() == 0 for x in given),
        len({x.shape for x in given}) > 1,
        not all(x.layout is torch.strided and x.is_contiguous() for x in given),
    )


Numbered = tuple[int, "SampleInput"]


def sweep(
    info: OpInfo,
    dtype: torch.dtype,
    count: Count,
    most: int = SAMPLES,
    pick: Callable[[Iterable[Numbered]], Iterable[Numbered]] = iter,
) -> None:
    """Every chosen sample of a set; raises with the first that differs."""

    def seen(operator: str, start: int, how: int, *_: object) -> None:
        if how != queue.ON_CPU:
            count.native.add(operator.removeprefix("aten::"))

    queue.observers.append(seen)
    try:
        written = False
        for i, sample in pick(enumerate(samples(info, dtype, most))):
            try:
                check(info, sample, count)
                written = written or in_place(info, sample)
            except Exception as error:
                raise AssertionError(f"{name(info)}, {dtype}, sample {i}: {error}") from error
        count.sets += 1
    finally:
        queue.observers.remove(seen)


def main() -> int:
    """Prints the counts, and every sample set that fails."""
    warnings.simplefilter("ignore")
    generator.host = True  # samples with random numbers are compared with the CPU's
    failed = 0
    for info, dtype in chosen():
        if (name(info), dtype) not in GAPS:
            try:
                sweep(info, dtype, COUNT)
            except AssertionError as error:
                failed += 1
                print(str(error).replace("\n", " ")[:300])
    print(summary([COUNT.packed()]))
    if missed := unreached([COUNT.packed()]):
        print(f"no sample reached {', '.join(missed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
