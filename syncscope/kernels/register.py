"""Tells PyTorch about the device, in the order it needs; once per process."""

from __future__ import annotations

import itertools

import torch

from syncscope.discover import discover
from syncscope.errors import UserError
from syncscope.kernels import attention, autocast, backend, fallback, guard, lstm, operators, ops, storage, views

_libraries: list[torch.library.Library] = []  # registrations die with these


def check() -> None:
    """Whether this PyTorch can take us.

    Raises:
        UserError: it is too old, or another backend has the one place there is.
    """
    setup = getattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend", None)
    if setup is None:
        raise UserError(
            f"torch {torch.__version__} cannot take a device written in Python",
            "install torch 2.10 or later: pip install 'torch>=2.10'",
        )
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone":
        raise UserError(
            f"another PyTorch backend, {taken!r}, is loaded in this process, and PyTorch has room for one",
            f"run without importing it, or trace {taken!r} itself: the OpenCL tracer needs no device of ours",
        )


class _Guard(torch._C._acc.DeviceGuard):
    """PyTorch asks it several times in every operator; this answer is given without a function of Python."""

    type_ = staticmethod(itertools.repeat(torch._C._autograd.DeviceType.PrivateUse1).__next__)


def register() -> None:
    """Makes `torch.device("ocl")`, `torch.ocl` and every operator known."""
    check()
    torch.utils.backend_registration._setup_privateuseone_for_python_backend(
        storage.NAME, backend_module=backend, device_guard=_Guard()
    )
    guard.install()
    storage.name_the_device()
    storage.install()
    backend.install()
    discover(ops)
    aten = torch.library.Library("aten", "IMPL")
    everything = torch.library.Library("_", "IMPL")
    _libraries.extend((aten, everything))
    operators.install(aten, views.install())
    autocast.install(aten)
    lstm.install(aten)
    attention.install(aten)

    def last_resort(op: torch._ops.OpOverload, *args: object, **kwargs: object) -> object:
        return fallback.on_cpu(op, *args, **kwargs)

    def no_sparse(op: torch._ops.OpOverload, *args: object, **kwargs: object) -> object:
        raise NotImplementedError(
            f"ocl has no sparse tensors, which {op} is asked for: stay on the CPU, or use x.to_dense()"
        )

    everything.fallback(last_resort, "PrivateUse1")
    everything.fallback(no_sparse, "SparsePrivateUse1")
    everything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for key in ("Conjugate", "Negative"):
        # Else PyTorch would resolve the source first, by a copy, whose source it would resolve first...
        aten.impl("_copy_from", torch.library.fallthrough_kernel, key)
    # Else `module.to("ocl")` would make new parameters instead of moving those there are: weights that two layers share would
    # be two from then on, and an optimizer made before would go on with the old ones.
    aten.impl("_has_compatible_shallow_copy_type", lambda mine, other: True, "PrivateUse1")
    for name in ("is_pinned", "_pin_memory"):
        aten.impl(name, getattr(backend, name), "CPU")
