"""The vocabulary of waits: each way of making the host wait, its name, what it waits for, and in words what it is.

The inference emits these, rules claim them, the recorder notes them, and a line of a report carries one. A `Read` may carry
another name, too: that of an operator or of a driver's call (`cudaStreamSynchronize`) for which there is no word here.
"""

from __future__ import annotations

from enum import Enum, StrEnum


class Family(Enum):
    """What the host waits for; the last two are those of OpenCL: what goes wrong in a kernel, and in what enqueues it."""

    SHAPE = "data-dependent shape"
    READ = "host read"
    COPY = "copy"
    LIBRARY = "library"
    EXPLICIT = "explicit"
    TIMING = "timing"
    FALLBACK = "fallback"
    KERNEL = "kernel"
    HOST_PROGRAM = "host program"


class Op(StrEnum):
    """A way of making the host wait; as a string it is its name."""

    family: Family
    words: str

    def __new__(cls, name: str, family: Family, words: str) -> Op:
        op = str.__new__(cls, name)
        op._value_ = name
        op.family = family
        op.words = words
        return op

    # the shape of a result depends on data
    NONZERO = "nonzero", Family.SHAPE, "positions of the elements that are not zero"
    ARGWHERE = "argwhere", Family.SHAPE, "positions of the elements that are not zero, one row each"
    WHERE = "where", Family.SHAPE, "torch.where with the condition alone"
    UNIQUE = "unique", Family.SHAPE, "distinct values"
    UNIQUE_CONSECUTIVE = "unique_consecutive", Family.SHAPE, "distinct runs of values"
    MASK_READ = "mask_read", Family.SHAPE, "x[mask]"
    MASK_WRITE = "mask_write", Family.SHAPE, "x[mask] = tensor"
    MASKED_SELECT = "masked_select", Family.SHAPE, "the selected elements, flat"
    BINCOUNT = "bincount", Family.SHAPE, "as many bins as the largest value"
    REPEAT_INTERLEAVE = "repeat_interleave", Family.SHAPE, "tensor repeats without output_size"
    ONE_HOT = "one_hot", Family.SHAPE, "one_hot without num_classes"
    SIZE = "size", Family.SHAPE, "a tensor where a size, a length or a bound is taken"
    NMS = "nms", Family.SHAPE, "boxes that survive non-maximum suppression"
    SPARSE = "sparse", Family.SHAPE, "conversion to or from a sparse or nested layout"
    COALESCE = "coalesce", Family.SHAPE, "duplicates of a sparse tensor added up"
    COMBINATIONS = "combinations", Family.SHAPE, "combinations of the elements (built on masked_select)"

    # a value goes to the host
    ITEM = "item", Family.READ, ".item()"
    TOLIST = "tolist", Family.READ, ".tolist()"
    FLOAT = "float", Family.READ, "float(tensor)"
    INT = "int", Family.READ, "int(tensor)"
    BOOL = "bool", Family.READ, "bool(tensor)"
    COMPLEX = "complex", Family.READ, "complex(tensor)"
    INDEX = "index", Family.READ, "a tensor where Python asks for an index"
    CONDITION = "condition", Family.READ, "a tensor in a condition"
    BUILTIN = "builtin", Family.READ, "min, max, sum, any, all, sorted, round over tensors"
    FORMAT = "format", Family.READ, "a tensor printed, formatted or logged"
    CPU = "cpu", Family.READ, ".cpu() and the like"
    NUMPY = "numpy", Family.READ, ".numpy()"
    ASARRAY = "asarray", Family.READ, "a tensor given to numpy"
    MATH = "math", Family.READ, "math.* of a tensor"
    EQUAL = "equal", Family.READ, "torch.equal"
    ALLCLOSE = "allclose", Family.READ, "torch.allclose"
    IS_NONZERO = "is_nonzero", Family.READ, "torch.is_nonzero"
    TENSOR_CHECK = "tensor_check", Family.READ, "torch._check_tensor_all"
    SCALAR_INDEX = "scalar_index", Family.READ, "a 0-dimensional integer tensor as an index"
    SCALAR_SLOT = "scalar_slot", Family.READ, "a tensor where a Python number is taken"
    READ_BUFFER = "read_buffer", Family.READ, "pyopencl copies a buffer to the host"
    READ_IMAGE = "read_image", Family.READ, "pyopencl copies an image to the host"
    MAP = "map", Family.READ, "pyopencl maps a buffer or an image into the host's memory"
    SVM_MEMCPY = "svm_memcpy", Family.READ, "pyopencl copies shared virtual memory"

    # bytes go to the device while the host waits
    TO_DEVICE = "to_device", Family.COPY, "a blocking copy to the device"
    TENSOR_LITERAL = "tensor_literal", Family.COPY, "torch.tensor(value, device=device)"
    CREATED_ON_HOST = "created_on_host", Family.COPY, "made on the host, then moved"
    INDEX_LIST = "index_list", Family.COPY, "a list or numpy index into a device tensor"
    INDEX_HOST = "index_host", Family.COPY, "a tensor of the host as an index into a device tensor"
    NUMBER_WRITE = "number_write", Family.COPY, "x[i] = number, at integer positions or at one element"
    WHERE_HOST = "where_host", Family.COPY, "a number of the host that is a tensor, as a choice of torch.where"
    DISTRIBUTION_NUMBER = (
        "distribution_number",
        Family.COPY,
        "a Python number beside a device tensor as parameters of a distribution",
    )
    WRITE_BUFFER = "write_buffer", Family.COPY, "pyopencl copies the host's memory to a buffer"
    WRITE_IMAGE = "write_image", Family.COPY, "pyopencl copies the host's memory to an image"
    TO = "to", Family.COPY, "a copy from or to the device: a profiler does not say which"

    # waits inside a library call
    DISTRIBUTION_VALIDATE = "distribution_validate", Family.LIBRARY, "a distribution that checks its arguments"
    GRAD_SCALER = "grad_scaler", Family.LIBRARY, "GradScaler reads whether there was an overflow"
    LOSS_SCALE = "loss_scale", Family.LIBRARY, "GradScaler gives its scale, which lives on the device, as a number"
    CLIP_GRAD_NORM = "clip_grad_norm", Family.LIBRARY, "clip_grad_norm_(error_if_nonfinite=True)"
    LINALG_CHECK = "linalg_check", Family.LIBRARY, "a linalg call that checks its status"
    MULTINOMIAL = "multinomial", Family.LIBRARY, "multinomial checks its weights"
    PACK_PADDED_SEQUENCE = (
        "pack_padded_sequence",
        Family.LIBRARY,
        "pack_padded_sequence needs the lengths on the host",
    )
    BACKWARD = "backward", Family.LIBRARY, "a backward pass that looks for the positions of a selection again"
    ANOMALY = "anomaly", Family.LIBRARY, "anomaly detection reads every gradient"
    TRANSFORMER_MASK = "transformer_mask", Family.LIBRARY, "TransformerEncoder looks into its mask"
    CTC_LOSS = "ctc_loss", Family.LIBRARY, "ctc_loss needs the lengths on the host"
    LIBRARY_READ = (
        "library_read",
        Family.LIBRARY,
        "a function that reads a value to check it or to size its result",
    )
    SYNC = "sync", Family.LIBRARY, "torch told of a wait, and no operator that made it was recorded"

    # the program asks for it
    SYNCHRONIZE = "synchronize", Family.EXPLICIT, "waits for everything"
    EMPTY_CACHE = "empty_cache", Family.EXPLICIT, "gives memory back, waits for everything"
    BARRIER = "barrier", Family.EXPLICIT, "waits for the other ranks"

    TIMING = "timing", Family.TIMING, "a clock read around device work without a synchronise"
    OCL_FALLBACK = "ocl_fallback", Family.FALLBACK, "runs on the CPU on the OpenCL backend"


VALUES = frozenset({Op.ITEM, Op.BOOL, Op.FLOAT, Op.INT, Op.COMPLEX, Op.TOLIST})
"""They do nothing but fetch a value."""

SINGLE = frozenset({Op.ITEM, Op.BOOL, Op.FLOAT, Op.INT, Op.INDEX})
"""They read one number: `syncscope verify --stale` can answer them with that of the step before, which has their shape."""

ASKED = frozenset({Op.CPU, Op.NUMPY, Op.TOLIST, Op.UNIQUE, *(op for op in Op if op.family is Family.EXPLICIT)})
"""Who writes them knows what they do: there is no other word for it, or another would not do less."""

COSTS_MORE = frozenset({Op.EMPTY_CACHE})
"""They cost more than the wait: to take one out is worth it, whatever has waited before."""

COPIES = frozenset({Op.CPU, Op.NUMPY, Op.ASARRAY, Op.FORMAT, Op.READ_BUFFER})
"""They fetch a tensor; a copy that does not wait may stand in their place."""

COUNTS: frozenset[str] = frozenset({
    Op.NONZERO, Op.ARGWHERE, Op.WHERE, Op.UNIQUE, Op.UNIQUE_CONSECUTIVE, Op.MASKED_SELECT, Op.MASK_READ, Op.MASK_WRITE,
    "nonzero_numpy", "masked_scatter", "index", "index_put", "index_put_", "_index_put_impl_",
})  # fmt: skip
"""They ask how many there are, by our name or by that of torch's operator; what is written instead does not ask."""

_OF_OPERATOR = {
    "_local_scalar_dense": Op.ITEM,
    "is_nonzero": Op.BOOL,
    "_unique": Op.UNIQUE,
    "_unique2": Op.UNIQUE,
    "unique_dim": Op.UNIQUE,
    "_to_copy": Op.TO,
}


UPLOADS: dict[str, Op] = {
    Op.TO: Op.TO_DEVICE, "copy_": Op.TO_DEVICE,
    "index": Op.INDEX_HOST, "index_put": Op.INDEX_HOST, "index_put_": Op.INDEX_HOST, "_index_put_impl_": Op.INDEX_HOST,
}  # fmt: skip
"""What torch's operators are whose name says not for what they wait, where all that they copy goes to the device."""


FALLBACK_OF = "fallback of "
"""How the name of an operator begins that ran on the CPU because the device has none, in recordings and where it waits."""


_ASKED_OF_THE_CPU: dict[str, Op] = {
    "_local_scalar_dense": Op.ITEM, "is_nonzero": Op.BOOL, "equal": Op.EQUAL, "allclose": Op.ALLCLOSE,
    "nonzero": Op.NONZERO, "masked_select": Op.MASKED_SELECT, "bincount": Op.BINCOUNT,
    "repeat_interleave": Op.REPEAT_INTERLEAVE, "index": Op.MASK_READ,
    "_unique": Op.UNIQUE, "_unique2": Op.UNIQUE, "unique_dim": Op.UNIQUE,
    "unique_consecutive": Op.UNIQUE_CONSECUTIVE, "unique_dim_consecutive": Op.UNIQUE_CONSECUTIVE,
    "_linalg_svd": Op.LINALG_CHECK, "_linalg_eigh": Op.LINALG_CHECK, "linalg_eig": Op.LINALG_CHECK,
    "_linalg_eigvals": Op.LINALG_CHECK, "linalg_lstsq": Op.LINALG_CHECK, "linalg_matrix_exp": Op.LINALG_CHECK,
}  # fmt: skip
"""Torch's operators that read a value on CUDA, too, or size their result by one; what checks its status outside of the operator
is a read of its own."""


def of_fallback(operator: str) -> Op | None:
    """What an operator that the CPU ran waits for on CUDA, too; None of one that is a wait only because the device lacks it."""
    name = operator.removeprefix(FALLBACK_OF).removeprefix("aten::").partition(".")[0]
    return _ASKED_OF_THE_CPU.get(name)


def of_operator(name: str) -> str:
    """What users call the wait of torch's operator `name` (without `aten::`); the name itself where it says it already.

    An `index` that waits stays one: it may be a mask, which asks how many, or positions that lie on the host.
    """
    return _OF_OPERATOR.get(name, name)
