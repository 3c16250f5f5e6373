"""A GPU that is not there: tensors lie in the host's memory, say that they lie on `cuda:0`, and tell where CUDA would wait.

Where the modes `Operators` and its `functions` are on, what `device="cuda"`, `x.cuda()` and `module.to("cuda")` give has a
storage that is marked, and so has what is computed from it. `heard` is called within the call that does it, with a word,
wherever torch's sync debug mode would warn on a GPU: numbers read by Python, sizes that depend on values, copies between both
memories without `non_blocking`, indices by masks or by tensors of the host, checks of decompositions; and where an operator of
CUDA waits unseen by that, as `coalesce` does for the number of entries that are left. Operators compute on the host: what only
kernels of CUDA do is not seen, and no memory is pinned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch._library.custom_ops import OPDEFS
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

Heard = Callable[[str], None]
Tensor = torch.Tensor
CUDA, HOST = torch.device("cuda", 0), torch.device("cpu")
PLAIN = (torch._C._disabled_torch_function_impl, Tensor.__torch_function__)
MASKS = (torch.bool, torch.uint8)
aten = torch.ops.aten

READS = """_local_scalar_dense nonzero masked_select _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive
    bincount _linalg_check_errors _linalg_eigh _linalg_svd linalg_pinv linalg_eig linalg_lstsq
    linalg_matrix_exp _coalesce _ctc_loss""".split()
"""Operators for which the host waits: Python reads the result, or must know how large it is or whether it is one."""
INDICES = "index index_put index_put_ _index_put_impl_ _unsafe_index _unsafe_index_put".split()
FIRST_ALONE = "_pack_padded_sequence _pad_packed_sequence".split()  # the second result, lengths, is of the host
FROM_DATA = (torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor, Tensor.new)
CHECKED_ON_HOST = (torch.quantile, torch.nanquantile, Tensor.quantile, Tensor.nanquantile)  # where CUDA asks nothing


def tensors(value: Any) -> Iterator[Any]:
    """The tensors in arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, set, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors(each)


def storage(tensor: Any) -> Any:
    """Where a tensor's values lie, also that of views, sparse ones and those that functorch wraps; None of those without."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if tensor.layout is not torch.strided:
        tensor = (Tensor._values if tensor.layout is torch.sparse_coo else Tensor.values)(tensor.detach())
    with contextlib.suppress(RuntimeError, NotImplementedError):
        return Tensor.untyped_storage(tensor)
    return None


def place(tensor: Any) -> int:
    """The address of its storage: the same for a view as for what it looks at."""
    held = storage(tensor)
    return 0 if held is None else int(held._cdata)


class Marks:
    """Which storages would be on the device."""

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}
        self.room = 4096  # so many, then those that are gone are let go of

    def __contains__(self, tensor: Any) -> bool:
        held = self.held.get(place(tensor))
        return held is not None and not held.expired()

    def put(self, tensor: Any, on_device: bool) -> None:
        """Say where a tensor lies from now on."""
        at = storage(tensor)
        if at is None:
            return
        self.held.pop(at._cdata, None)
        if on_device:
            if len(self.held) > self.room:
                self.held = {key: held for key, held in self.held.items() if not held.expired()}
                self.room = 2 * len(self.held) + 4096
            self.held[at._cdata] = StorageWeakRef(at)


class Operators(TorchDispatchMode):
    """Below autograd: marks what operators give, and knows which of them wait."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self.marks, self.heard = Marks(), heard
        self.functions = Functions(self)
        # whether what is made of no other tensor lies on the device; None outside of functions
        self.makes: bool | None = None
        self.silent = False

    def __torch_dispatch__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = OPDEFS.get(func._schema.name)
        with self:  # tensors of inference mode come without autograd, which takes operators apart that others make up
            if (result := func.decompose(*args, **kwargs)) is not NotImplemented:
                return result
        with torch._C.DisableTorchFunctionSubclass():
            given = list(tensors((args, kwargs)))
            marked = [each in self.marks for each in given]
            if own is not None:  # an operator that Python defines: what it calls is heard
                kernel = own._backend_fns.get("cuda" if any(marked) else "cpu") or own._backend_fns.get(None) or func
                with self, self.functions:
                    return kernel(*args, **kwargs)
            if any(marked) and not self.silent and (word := self.wait(func, args, kwargs)):
                self.heard(word)
            result = func(*args, **kwargs)
            if any(marked) if given else self.made_on_device():
                lies = {place(each) for each in given}  # a view, or what is written to, lies where it lay
                made = list(tensors(result))
                for each in made[:1] if func.overloadpacket.__name__ in FIRST_ALONE else made:
                    if place(each) not in lies:
                        self.marks.put(each, True)
        return result

    def made_on_device(self) -> bool:
        """Outside of functions autograd makes its tensors there, and `torch.Tensor(3)`, a class, its own on the host."""
        return torch._C._current_graph_task_id() != -1 if self.makes is None else self.makes

    def wait(self, func: Any, args: Any, kwargs: Any) -> str:
        """What the host waits for in an operator of which some tensor is on the device; "" where it does not."""
        word, overload, marks = func.overloadpacket.__name__, func._overloadname, self.marks
        if word in READS or kwargs.get("check_errors"):
            return str(word)
        if word == "copy_":
            blocking = not (kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
            return "copy" if blocking and args[1].numel() and (args[0] in marks) != (args[1] in marks) else ""
        if word in INDICES:
            if word == "index_put" and args[2].ndim == 0 and args[1][0] is not None and args[1][0].dtype in MASKS:
                return ""  # autograd's zero lies where the number was: on the host
            if args[0] in marks:
                return self.index(*args)
            # of the host's numbers, written where the device says: the indices are brought over
            return "copy" if "put" in word and any(each is not None and each in marks for each in args[1]) else ""
        if word == "where" and overload == "self":
            return "copy" if any(each not in marks for each in args) else ""
        asks: dict[str, Callable[[], bool]] = {
            "repeat_interleave": lambda: kwargs.get("output_size") is None,
            "equal": lambda: args[0].shape == args[1].shape and args[0] is not args[1],
            "isin": lambda: overload == "Tensor_Tensor" and args[1].numel() >= 10 * args[0].numel() ** 0.145,
            "normal": lambda: overload in ("float_Tensor", "Tensor_Tensor"),  # no deviation may be below zero
        }
        return str(word) if word in asks and asks[word]() else ""

    def index(self, held: Any, indices: Any, value: Any = None, accumulate: bool = False, *rest: Any) -> str:
        """A mask's positions are counted, what lies on the host is copied; one number under one mask is filled in.

        Of a mask of the host they are counted there, into pinned memory (ATen/native/IndexingUtils.h), unless they add up.
        """
        given = [each for each in indices if each is not None]
        masks = [each for each in given if each.dtype in MASKS]
        if value is not None and value not in self.marks:
            filled = value.numel() == 1 and len(given) == 1 and not accumulate and masks and masks[0] in self.marks
            return "" if filled else "copy"
        if any(each in self.marks for each in masks):
            return "mask"
        copied = given if accumulate else [each for each in given if each.dtype not in MASKS]
        return "copy" if any(each not in self.marks for each in copied) else ""


def meant(value: Any) -> Any:
    """The device that an argument names, if it names one."""
    if isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu"):
        return torch.device(value)
    return CUDA if type(value) is int else value if isinstance(value, torch.device) else None


class Functions(TorchFunctionMode):
    """Above autograd: says `cuda:0`, and moves tensors between the two memories."""

    def __init__(self, below: Operators) -> None:
        super().__init__()
        self.below, self.marks = below, below.marks
        self.own: dict[Any, Callable[..., Any]] = {
            Tensor.device.__get__: lambda x: CUDA if x in self.marks else Tensor.device.__get__(x),
            Tensor.is_cuda.__get__: lambda x: x in self.marks,
            Tensor.is_cpu.__get__: lambda x: x not in self.marks,
            Tensor.get_device: lambda x: 0 if x in self.marks else -1,
            Tensor.pin_memory: lambda x, *_: x,
            Tensor.is_pinned: lambda x, *_: False,
            Tensor.to: self.to,
            Tensor.cpu: lambda x, **more: self.to(x, HOST, **more),
            Tensor.cuda: lambda x, device=None, non_blocking=False, **more: self.to(x, CUDA, non_blocking=non_blocking),
            Tensor.type_as: self.to,
            Tensor.type: self.type,
            Tensor.numpy: self.numpy,
            Tensor.__array__: self.numpy,
            Tensor.tolist: self.tolist,
            Tensor.__deepcopy__: self.deepcopy,
            Tensor.__getitem__: lambda x, at: self.call(Tensor.__getitem__, (x, self.indices(x, at)), {}),
            Tensor.__setitem__: lambda x, at, to: self.call(Tensor.__setitem__, (x, self.indices(x, at), to), {}),
            torch.histc: self.histc,
            Tensor.histc: self.histc,
            torch._C._nn._parse_to: lambda *args, **more: torch._C._nn._parse_to(
                *(CUDA if type(each) is int else each for each in args), **more
            ),
            torch.device: lambda of, *rest, **more: torch.device(
                *(["cuda"] if type(of) is int else []), of, *rest, **more
            ),
        }

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        own = [each for each in kinds if each.__torch_function__ not in PLAIN and each is not torch.nn.Parameter]
        if own and torch._C._is_torch_function_enabled():  # a class of the user's: what it calls comes back to here
            with self:
                return own[0].__torch_function__(func, kinds, args, kwargs)
        return self.own[func](*args, **kwargs) if func in self.own else self.call(func, args, kwargs)

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Any other function: `device` is where what it makes is to lie; without it, it lies where what it is made of lies."""
        below, device = self.below, meant(kwargs.get("device"))
        given = list(tensors((args, kwargs)))
        marked = any(each in self.marks for each in given)
        kwargs = {**kwargs, "device": HOST} if device is not None and device.type == "cuda" else kwargs
        args = tuple(HOST if isinstance(each, torch.device) and each.type == "cuda" else each for each in args)
        classes = (
            kwargs.get("num_classes", args[1] if len(args) > 1 else -1) if func is torch.nn.functional.one_hot else -1
        )
        before = below.makes, below.silent
        below.makes = marked if device is None else device.type == "cuda"
        below.silent = below.silent or func in FROM_DATA or func in CHECKED_ON_HOST or classes >= 0
        try:
            result = func(*args, **kwargs)
        finally:
            below.makes, below.silent = before
        if func in FROM_DATA:
            return self.from_data(func, args, kwargs, device, result)
        for each in tensors(result) if device is not None else ():
            if not any(each is old for old in given):
                self.marks.put(each, device.type == "cuda")
        if func is torch.sparse_coo_tensor and marked and len(args) < 3 and "size" not in kwargs:
            below.heard("sparse")
        return result

    def from_data(self, func: Any, args: Any, kwargs: Any, device: Any, result: Any) -> Any:
        """torch.tensor and its like: data of the host are copied to the device, numbers of the device read one by one."""
        method = func in (Tensor.new_tensor, Tensor.new)
        data = (args[1:2] if method else args[:1]) or (kwargs.get("data"),)
        on_device = isinstance(data[0], Tensor) and data[0] in self.marks
        to = device.type == "cuda" if device is not None else args[0] in self.marks if method else on_device
        sized = func is Tensor.new and all(isinstance(each, (int, torch.Size)) for each in args[1:])
        inside = not isinstance(data[0], Tensor) and any(each in self.marks for each in tensors(data[0]))
        return self.moved(result, data[0], on_device, to, blocking=not sized or inside, inside=inside)

    def to(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """A tensor like another, or on a device, or of another dtype."""
        other = next((each for each in (*args, kwargs.get("other")) if isinstance(each, Tensor)), None)
        named = [each for each in map(meant, (*args[:1], kwargs.get("device"))) if each is not None]
        on_device = x in self.marks
        to = other in self.marks if other is not None else named[0].type == "cuda" if named else on_device
        args = (HOST, *args[1:]) if args and meant(args[0]) is not None else args
        kwargs = {**kwargs, "device": HOST} if meant(kwargs.get("device")) is not None else kwargs
        blocking = not (kwargs.get("non_blocking") or any(each is True for each in args))
        return self.moved(Tensor.to(x, *args, **kwargs), x, on_device, to, blocking)

    def moved(self, result: Any, of: Any, on_device: bool, to: bool, blocking: bool, inside: bool = False) -> Any:
        """The result of a copy from one memory to the other, which shares no storage with what it was."""
        if on_device != to:
            if isinstance(of, Tensor) and place(result) == place(of):
                result = result.clone()
            self.marks.put(result, to)
        elif not isinstance(of, Tensor):
            self.marks.put(result, to)
        if inside or (on_device != to and blocking and result.numel()):
            self.below.heard("copy")
        return result

    def type(self, x: Any, dtype: Any = None, *rest: Any, **more: Any) -> Any:
        """A type of tensors, `torch.LongTensor`, names a memory, too."""
        if dtype is None:
            return Tensor.type(x).replace("torch.", "torch.cuda." if x in self.marks else "torch.")
        named = f"{dtype.__module__}.{dtype.__name__}" if isinstance(dtype, type) else str(dtype)
        if not named.endswith("Tensor"):
            return Tensor.type(x, dtype)
        return self.to(Tensor.type(x, named.replace("cuda.", "")), CUDA if "cuda." in named else HOST)

    def numpy(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        if x in self.marks:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        return Tensor.numpy(x.detach() if kwargs.get("force") else x)

    def tolist(self, x: Any) -> Any:
        if x in self.marks:
            self.below.heard("tolist")
        return Tensor.tolist(x)

    def indices(self, x: Any, at: Any) -> Any:
        """Lists and arrays as tensors, in one copy, where what they pick from lies: its gradient finds them there."""
        if isinstance(at, tuple):
            return tuple(self.indices(x, each) for each in at)
        if x not in self.marks or not isinstance(at, (list, np.ndarray)):
            return at
        if any(isinstance(each, (Tensor, slice, list)) for each in at) if isinstance(at, list) else not at.ndim:
            return at
        numbers = np.asarray(at)
        if numbers.dtype.kind not in "iub":
            return at
        made = torch.tensor(numbers)
        self.marks.put(made, True)
        self.below.heard("copy")
        return made

    def deepcopy(self, x: Any, memo: Any) -> Any:
        result = Tensor.__deepcopy__(x, memo)
        self.marks.put(result, x in self.marks)
        return result

    def histc(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """CUDA counts whole numbers, too."""
        return self.call(torch.histc, (x if x.is_floating_point() else x.float(), *args), kwargs).to(x.dtype)
