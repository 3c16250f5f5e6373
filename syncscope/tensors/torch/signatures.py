"""What torch's callables give back and which of their parameters take Python numbers.

`callables.json` is generated from torch's own schemas (`python -m tools.generate_torch_table`); what no schema says
(dtype, number of dimensions, whether a value is made on the host) stands here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from syncscope.model.fact import Dtype


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Signature(NamedTuple):
    """What a torch callable gives back, and which parameters take Python numbers."""

    tensor: bool  # it may give one
    tensors: bool  # or a tuple of two or more
    listed: bool  # or a list of them
    number: bool  # or a number
    truth: bool  # or whether something holds
    width: int  # of the tuple, where it gives one
    slots: dict[str, bool]  # name -> whether it is a size (an integer or a list of integers that makes a shape)
    places: dict[int, str]  # position -> name
    spread: int  # the position from which sizes may be spread, or a large number


_NOWHERE = 99
_SIZES = _words("size shape repeats sizes split_size split_sizes steps end start step length dims")


def _signature(text: str) -> Signature:
    returns, _, rest = text.partition(" ")
    ways = returns.split("|")
    gives = {way[:2] if way.startswith("TT") else way for way in ways}
    slots: dict[str, bool] = {}
    places: dict[int, str] = {}
    spread = _NOWHERE
    for word in rest.split():
        listed = word.startswith("#")
        word = word.removeprefix("#")
        digits = word[: len(word) - len(word.lstrip("0123456789"))]
        name = word.lstrip("*0123456789")
        slots[name] = listed or name in _SIZES
        if digits:
            places[int(digits)] = name
            if listed:
                spread = min(spread, int(digits))
    kinds = ("T" in gives, "TT" in gives, "L" in gives, "N" in gives, "B" in gives)
    return Signature(*kinds, max(map(len, ways)), slots, places, spread)


class Callables(NamedTuple):
    """The generated table, read once."""

    functions: dict[str, str]  # "torch.narrow" -> entry
    methods: dict[str, str]
    modules: frozenset[str]
    distributions: frozenset[str]
    optimizers: frozenset[str]
    tags: dict[str, list[str]]


@cache
def table() -> Callables:
    """The generated table of torch's callables."""
    raw = json.loads((Path(__file__).parent / "callables.json").read_text())
    spaces = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")
    functions = {f"{space}.{name}": entry for space in spaces for name, entry in raw[space].items()}
    modules, distributions, optimizers = (frozenset(raw[key]) for key in ("modules", "distributions", "optimizers"))
    return Callables(functions, raw["torch.Tensor"], modules, distributions, optimizers, raw["tags"])


@cache
def function(name: str) -> Signature | None:
    """The signature behind a dotted name ("torch.nn.functional.pad"), or None."""
    entry = table().functions.get(name)
    return _signature(entry) if entry is not None else None


@cache
def method(name: str) -> Signature | None:
    """The signature of a tensor method; position 0 is the tensor itself."""
    entry = table().methods.get(name)
    if entry is None and name.endswith("_"):
        entry = table().methods.get(name[:-1])
    return _signature(entry) if entry is not None else None


_BOOL = """eq ne lt le gt ge greater less greater_equal less_equal not_equal isnan isinf isfinite isin isclose isneginf
isposinf isreal logical_and logical_or logical_not logical_xor any all bool signbit"""
_INT = """argmax argmin argsort nonzero argwhere bincount count_nonzero searchsorted bucketize one_hot long int short byte
randint randperm multinomial tril_indices triu_indices combinations_ nonzero_static char randint_like"""
_FLOAT = """float double half bfloat16 softmax log_softmax sigmoid mean rand randn linspace exp log sqrt rsqrt tanh sin cos
cross_entropy mse_loss l1_loss nll_loss binary_cross_entropy binary_cross_entropy_with_logits smooth_l1_loss kl_div cdist
norm std var interpolate grid_sample layer_norm rand_like randn_like logsumexp nanmean gelu silu linear conv2d conv1d log1p
cosine_similarity normalize div true_divide log2 log10 atan2 erf dropout sigmoid_ softplus logspace hann_window"""
DTYPE_OF: dict[str, Dtype] = {
    name: dtype
    for dtype, names in ((Dtype.BOOL, _BOOL), (Dtype.INT, _INT), (Dtype.FLOAT, _FLOAT))
    for name in names.split()
}
_NAMES = {
    Dtype.BOOL: "bool BoolTensor",
    Dtype.INT: "int long int8 int16 int32 int64 short uint16 uint32 uint64 LongTensor IntTensor ShortTensor",
    Dtype.FLOAT: "float double half float16 float32 float64 bfloat16 FloatTensor DoubleTensor HalfTensor BFloat16Tensor",
    Dtype.COMPLEX: "complex64 complex128 cfloat cdouble",
    Dtype.UNKNOWN: "uint8 ByteTensor",  # as an index a mask, else numbers
}
DTYPE_NAMED: dict[str, Dtype] = {name: dtype for dtype, names in _NAMES.items() for name in names.split()}

# Made on the host unless a device is given.
FACTORIES = _words(
    """tensor as_tensor zeros ones empty full rand randn randint randperm arange linspace logspace eye tril_indices
    triu_indices from_numpy frombuffer from_file scalar_tensor hann_window hamming_window range asarray FloatTensor LongTensor
    BoolTensor IntTensor DoubleTensor HalfTensor ByteTensor Tensor empty_strided"""
)
LIKE = frozenset(name for name in table().functions if name.endswith("_like"))
# One value is left when no dimension is named.
REDUCTIONS = _words(
    """sum mean max min prod any all std var norm argmax argmin amax amin logsumexp median nansum nanmean count_nonzero
    nanmedian dist dot trace aminmax mode"""
)
LOSSES = _words(
    """cross_entropy mse_loss l1_loss nll_loss binary_cross_entropy binary_cross_entropy_with_logits smooth_l1_loss
    kl_div huber_loss cosine_embedding_loss margin_ranking_loss triplet_margin_loss hinge_embedding_loss ctc_loss
    gaussian_nll_loss poisson_nll_loss multi_margin_loss multilabel_margin_loss soft_margin_loss
    multilabel_soft_margin_loss"""
)
# Take their sizes one by one as well as in a list.
SPREAD = _words("""view reshape expand repeat tile zeros ones empty rand randn new_zeros new_ones new_empty permute""")
# Pairs (values, indices) when a dimension is named.
PAIRED = _words("""max min median mode sort topk kthvalue cummax cummin nanmedian aminmax""")
# Checked for success, which the host reads; each has an `_ex` form or a switch.
LINALG_CHECKED = _words(
    """torch.linalg.inv torch.linalg.solve torch.linalg.cholesky torch.inverse torch.cholesky torch.linalg.eigh
    torch.linalg.eigvalsh torch.linalg.svd torch.linalg.svdvals torch.linalg.eig torch.linalg.eigvals torch.svd
    torch.linalg.lu_factor torch.linalg.ldl_factor torch.linalg.pinv torch.linalg.matrix_rank torch.linalg.lstsq
    torch.linalg.tensorinv torch.linalg.tensorsolve torch.linalg.cond torch.pinverse torch.linalg.matrix_exp
    torch.matrix_exp"""
)

LINALG_CHECKED_METHODS = _words("inverse pinverse matrix_exp cholesky svd")

# Without a kernel on the OpenCL backends: what is LAPACK or FFT on the CPU, and these. Asked for with `--backend ocl`.
_OCL_NATIVE = _words("norm vector_norm matrix_norm matmul multi_dot cross vecdot diagonal")
OCL_FALLBACK = frozenset(
    name
    for name in table().functions
    if name.startswith(("torch.linalg.", "torch.fft.")) and name.rpartition(".")[2] not in _OCL_NATIVE
) | _words(
    """torch.cholesky torch.inverse torch.pinverse torch.svd torch.qr torch.geqrf torch.ormqr torch.histc torch.histogram
    torch.searchsorted torch.bucketize torch.multinomial torch.cdist torch.median torch.kthvalue torch.mode
    torch.nn.functional.grid_sample torch.nn.functional.max_unpool2d torch.nn.functional.ctc_loss"""
)

# Attributes that only a torch tensor has: seeing one says what the value is.
TORCH_ONLY = _words(
    """bool int byte short char sqrt square reciprocal neg floor ceil trunc frac sin cos tan acos asin atan sinh cosh
    erf erfc erfinv lgamma digamma expm1 log2 log10 exp2 sgn logit ndimension nan_to_num logaddexp unflatten
    unsqueeze unsqueeze_ detach detach_ masked_fill masked_fill_ masked_select masked_scatter index_select index_add
    index_add_ index_fill_ index_copy_ scatter scatter_ scatter_add scatter_add_ permute contiguous expand expand_as
    view view_as type_as new_zeros new_ones new_full new_tensor new_empty numel nelement softmax log_softmax sigmoid
    relu narrow unbind topk logsumexp repeat_interleave is_cuda is_floating_point grad_fn retain_grad clamp_ clamp
    clamp_min clamp_max bernoulli_ normal_ uniform_ zero_ fill_ mul_ add_ sub_ div_ copy_ addcmul_ addcdiv_ lerp_
    isnan isinf isfinite bmm matmul mT unfold triu tril logical_and logical_or logical_not count_nonzero amax amin
    rsqrt log1p tanh data_ptr element_size is_contiguous nonzero_static long size dim t"""
) | {name for name in table().methods if name.endswith("_") and name != "requires_grad_"}  # modules have it, too
# Of these only the call tells: as an attribute they may be anything.
TOLD_BY_CALL = _words(
    """size t dim bool int byte short char sqrt square reciprocal neg floor ceil trunc frac sin cos tan acos asin atan sinh
    cosh erf erfc erfinv lgamma digamma expm1 log2 log10 exp2 sgn logit"""
)
# Attributes that numpy arrays have too, and nothing else that is common.
ARRAY_LIKE = _words(
    """shape ndim reshape argmax argmin cumsum transpose flatten nonzero squeeze any all sum mean  numpy float
    tolist clone abs std var max min"""
)
# What a method of an unknown object may mean: taken as a guess.
SHARED = _words("""item tolist cpu numpy nonzero unique any all""")
# First arguments of these say nothing of a tensor.
TAKE_OTHERS = _words(
    """tensor as_tensor from_numpy zeros ones empty full rand randn randint randperm arange linspace device load save
    is_tensor cat stack manual_seed set_default_dtype no_grad autocast compile hstack vstack get_autocast_dtype
    Generator set_grad_enabled einsum finfo iinfo is_available range eye meshgrid concat asarray scalar_tensor
    block_diag logspace normal set_num_threads cuda device_count broadcast_shapes concatenate dtype checkpoint wrap jit
    trace script grad export tril_indices triu_indices result_type div floor_divide pow is_floating_point add mul sub
    max min typename hann_window hamming_window blackman_window bartlett_window kaiser_window fftfreq rfftfreq
    get_device_module set_float32_matmul_precision chain_matmul cartesian_prod"""
)
