"""What `torch.autocast("ocl")` casts: PyTorch's own lists for CUDA, which it leaves to other backends to register.

Products run in half precision and are summed in float; what loses too much in half runs in float32. The lists are those of
ATen/autocast_mode.h of PyTorch 2.13; with an earlier one, what that casts of them. In an autocast region PyTorch calls these
functions first; outside of one they cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import casts, operators, storage

LOWER = """
    _convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
    conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm
    chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    _scaled_dot_product_flash_attention scaled_dot_product_attention
"""
FLOAT = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
    pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim
    cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
    smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
    multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
    _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d
    upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
    _upsample_bicubic2d_aa
"""
FLOAT_RESULT = """
    prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
    linalg_matrix_norm.str_ord sum sum.dim_IntList
"""
WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"
_WITHOUT = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
_outside = torch._C._ExcludeDispatchKeyGuard


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A floating-point tensor of the device in `dtype`, parameters kept for their next use; others as they are."""
    if x.dtype is dtype or not _counts(x):
        return x
    if x.dtype is not torch.float32 or dtype is torch.float32 or not (x.requires_grad and x.is_leaf):
        return x.to(dtype)
    if x._is_view() or not torch.is_autocast_cache_enabled():
        return x.to(dtype)
    return casts.cast(x, dtype)


def _counts(x: Tensor) -> bool:
    return x.device.type == storage.NAME and x.is_floating_point() and x.dtype is not torch.float64


def _all(values: object, dtype: torch.dtype) -> object:
    """An argument with its tensors cast, those in lists, too."""
    if isinstance(values, Tensor):
        return cast(values, dtype)
    if isinstance(values, (list, tuple)):
        return type(values)(_all(x, dtype) for x in values)
    return values


def _to(chosen: Callable[[Iterable[object]], torch.dtype], target: torch._ops.OpOverload) -> Callable[..., object]:
    def run(*args: object, **kwargs: object) -> object:
        with _outside(_WITHOUT):
            dtype = chosen((*args, *kwargs.values()))
            return target(*(_all(x, dtype) for x in args), **{k: _all(x, dtype) for k, x in kwargs.items()})

    return run


def _lower(values: Iterable[object]) -> torch.dtype:
    return torch.get_autocast_dtype(storage.NAME)


def _float(values: Iterable[object]) -> torch.dtype:
    return torch.float32


def _widest(values: Iterable[object]) -> torch.dtype:
    """The type of the region, or float32 where one of the tensors has it."""
    found = [x for v in values for x in (v if isinstance(v, (list, tuple)) else [v]) if isinstance(x, Tensor)]
    return torch.float32 if any(x.dtype is torch.float32 and _counts(x) for x in found) else _lower(values)


def _with_float_result(target: torch._ops.OpOverload) -> Callable[..., object]:
    """In float32 from the first element on, unless the caller names a dtype."""
    at = [a.name for a in target._schema.arguments].index("dtype")

    def run(self: Tensor, *args: object, **kwargs: object) -> object:
        with _outside(_WITHOUT):
            if _counts(self) and kwargs.get("dtype") is None:
                if len(args) < at:
                    kwargs["dtype"] = torch.float32
                elif args[at - 1] is None:
                    args = (*args[: at - 1], torch.float32, *args[at:])
            return target(self, *args, **kwargs)

    return run


def _softmax(name: str) -> Callable[..., object]:
    """A float16 is widened by the kernel itself, as on CUDA; what else there is by a copy."""
    otherwise = _with_float_result(operators.overload(f"{name}.int"))
    kernel = operators.overload(f"_{name}")

    def run(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> object:
        if dtype is not None or self.dtype is not torch.float16 or not _counts(self):
            return otherwise(self, dim, dtype)
        with _outside(_WITHOUT):
            return kernel(self, dim, True)

    return run


def _norm(self: Tensor, p: Number = 2) -> Tensor:
    with _outside(_WITHOUT):
        return torch.norm(self, p, dtype=torch.float32) if _counts(self) else torch.ops.aten.norm.Scalar(self, p)


def _norm_over(self: Tensor, p: Number | None, dim: list[int], keepdim: bool = False) -> Tensor:
    with _outside(_WITHOUT):
        if _counts(self):
            return torch.norm(self, p, dim, keepdim, dtype=torch.float32)
        return torch.ops.aten.norm.ScalarOpt_dim(self, p, dim, keepdim)


def _refused(*args: object, **kwargs: object) -> object:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: probabilities lose too much in "
        "half precision. Leave out the sigmoid and use binary_cross_entropy_with_logits or BCEWithLogitsLoss, or compute it "
        "in float32 in a region of torch.autocast('ocl', enabled=False)."
    )


def casts_on_cuda(name: str) -> bool:
    """Whether this PyTorch casts what the operator is given; one that was built without CUDA knows it, too."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "AutocastCUDA"))


def install(library: torch.library.Library) -> None:
    """Registers what is cast, and forgets what was when PyTorch does: at the end of the outermost region."""

    def register(name: str, kernel: Callable[..., object]) -> None:
        library.impl(name, kernel, "AutocastPrivateUse1")

    for names, chosen in ((LOWER, _lower), (FLOAT, _float), (WIDEST, _widest)):
        for name in names.split():
            if operators.known(name) and casts_on_cuda(name):
                register(name, _to(chosen, operators.overload(name)))
    for name in FLOAT_RESULT.split():
        packet, _, variant = name.partition(".")
        fused = packet in ("softmax", "log_softmax") and variant == "int"
        register(name, _softmax(packet) if fused else _with_float_result(operators.overload(name)))
    register("norm.Scalar", _norm)
    register("norm.ScalarOpt_dim", _norm_over)
    register("binary_cross_entropy", _refused)
    forget = torch.clear_autocast_cache

    def clear_autocast_cache() -> None:
        casts.forget()
        forget()

    torch.clear_autocast_cache = clear_autocast_cache
