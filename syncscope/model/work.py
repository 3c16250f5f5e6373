"""What the device did in the counted steps, by kernel and by operator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelLine:
    """All runs of one kernel, copy or fill. `count` and `time` (ns) are per step, `longest` is ns of a single run."""

    name: str
    kind: str  # "kernel", "copy" or "fill"
    count: float
    time: float
    longest: int


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """The work of one operator on tensors of the same shapes, per step: `time` in ns, floating-point operations, bytes.

    `bound` is the ceiling that it is nearer to, "memory" or "arithmetic", and `reached` the share of that; "" and 0 where its
    work or the ceilings are not known. `kernels` ran for it; `arithmetic` is what they multiply in, "" where they do not, and
    `why` how more than all of a ceiling can be reached.
    """

    op: str
    shapes: str
    count: float
    time: float
    flops: float
    bytes: float
    bound: str
    reached: float
    kernels: tuple[str, ...]
    arithmetic: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ModuleLine:
    """The work that was launched in the calls of one `nn.Module`, per step. `path` are the names of the modules around it and
    its own, `count` and `own` (ns) of what it launched itself, `time` with that of the modules within it."""

    path: tuple[str, ...]
    count: float
    own: float
    time: float


@dataclass(frozen=True, slots=True)
class Work:
    """The work of the device, the longest first; `modules` in the order of their calls, each before those within it. The
    ceilings are bytes and operations a second, 0 where not known; `source` says where they are from."""

    kernels: tuple[KernelLine, ...]
    operators: tuple[OperatorLine, ...]
    bandwidth: float = 0.0
    flops: float = 0.0
    flops_16: float = 0.0
    source: str = ""
    modules: tuple[ModuleLine, ...] = ()
    flops_tf32: float = 0.0
