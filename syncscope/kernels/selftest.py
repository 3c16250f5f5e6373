"""A look at the compiler before we trust it: PoCL builds are known that abort, or multiply wrongly, on harmless kernels.

Matrix product, convolution forward and backward, and a reduction are compared with numpy in a child process, because a
compiler that aborts takes its process along. The verdict is kept per platform, driver, CPU and kernel sources.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from syncscope import interpreters
from syncscope.errors import UserError
from syncscope.files import cache_folder
from syncscope.kernels.device import ENV, device, devices, info

SWITCH = "SYNCSCOPE_OCL_SELFTEST"  # "off" trusts the compiler; "child" is set for the process that looks at it
_TOLERANCE = 1e-4  # relative to the largest value; honest float32 stays below 1e-5 here
_PATIENCE = 600  # seconds; a cold PoCL on a busy machine takes about ten
# A fifth of what the import of torch takes is spent on looking for garbage, of which there is none.
_CHILD = tuple(
    interpreters.command(
        "import gc; gc.disable(); import syncscope.kernels; sys.exit(syncscope.kernels.selftest.main())"
    )
)


def require(command: tuple[str, ...] = _CHILD, cache: Path | None = None) -> None:
    """Returns if this device computes rightly: known from an earlier time, or seen now by `command`.

    Raises:
        UserError: it computes wrongly, or its compiler aborts; the hint says what to do.
    """
    if os.environ.get(SWITCH) in ("off", "child"):
        return
    passed = (cache or cache_folder("ocl-selftest")) / _fingerprint()
    if passed.exists():
        return
    try:
        child = subprocess.run(
            command, env={**os.environ, SWITCH: "child"}, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        wrong = child.stdout.strip() or child.stderr.strip()[-800:] if child.returncode else ""
        wrong = wrong or (f"the compiler ended its process with code {child.returncode}" if child.returncode else "")
    except subprocess.TimeoutExpired:
        wrong = f"no answer within {_PATIENCE} s"
    if wrong:
        about = info()
        raise UserError(
            f"the OpenCL compiler of {about.name} ({about.platform}, driver {about.driver}) fails the self-test: {wrong}",
            _linker() or f"{_others()}, or install another driver; {SWITCH}=off uses it all the same",
        )
    try:
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.touch()
    except OSError:
        pass  # a home that cannot be written to costs the look again next time, and nothing else


def _linker() -> str:
    """What to install where PoCL has nothing to link its kernels with; "" where it has."""
    if "Portable" not in device.platform.name or shutil.which("ld"):
        return ""
    return "PoCL links its kernels with `ld`, and there is none in PATH: `apt install binutils`, or your system's package of it"


def _others() -> str:
    """How to use another device, where there is one; else where to get one."""
    others = [f"{ENV}={number} is {one.platform.version.strip()}" for number, one in devices().items() if one != device]
    if others:
        return "choose another device: " + ", ".join(others)
    return f"`pip install pocl-binary-distribution` brings a PoCL that {ENV}=pocl chooses"


def _fingerprint() -> str:
    """Names a configuration: everything that decides what machine code comes out."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    cpu = next((line for line in lines if line.startswith("model name")), platform.processor())
    flags = next((line for line in lines if line.startswith("flags")), "")
    facts = (
        device.platform.version,
        device.platform.name,
        device.name,
        device.driver_version,
        cpu,
        flags,
        torch.__version__,
    )
    digest = hashlib.sha256("\n".join(facts).encode())
    for source in (p for kind in ("*.cl", "*.py") for p in sorted(Path(__file__).parent.rglob(kind))):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:32]


def _cases() -> Iterator[tuple[str, torch.Tensor, np.ndarray]]:
    """What the device makes of something, and what numpy makes of it in double precision."""
    random = np.random.default_rng(0)

    def draw(*shape: int) -> tuple[torch.Tensor, np.ndarray]:
        values = random.standard_normal(shape).astype(np.float32)
        return torch.from_numpy(values).to("ocl"), values.astype(np.float64)

    for m, k, n in ((37, 65, 43), (64, 128, 96)):
        (a, a_), (b, b_) = draw(m, k), draw(k, n)
        yield f"a {m}x{k}x{n} matrix product", a @ b, a_ @ b_

    (x, x_), (w, w_), (g, g_) = draw(2, 5, 19, 21), draw(7, 5, 3, 3), draw(2, 7, 19, 21)
    x.requires_grad_()
    w.requires_grad_()
    y = torch.nn.functional.conv2d(x, w, padding=1)
    y.backward(g)
    padded = np.pad(x_, ((0, 0), (0, 0), (1, 1), (1, 1)))
    forward, to_weight, to_input = np.zeros(g_.shape), np.zeros(w_.shape), np.zeros(padded.shape)
    for i in range(3):
        for j in range(3):
            window = padded[:, :, i : i + 19, j : j + 21]
            forward += np.einsum("nchw,oc->nohw", window, w_[:, :, i, j])
            to_weight[:, :, i, j] = np.einsum("nchw,nohw->oc", window, g_)
            to_input[:, :, i : i + 19, j : j + 21] += np.einsum("nohw,oc->nchw", g_, w_[:, :, i, j])
    yield "a convolution", y, forward
    yield "a convolution's input gradient", x.grad, to_input[:, :, 1:-1, 1:-1]
    yield "a convolution's weight gradient", w.grad, to_weight

    v, v_ = draw(3, 10_007)
    yield "a sum", v.sum(1), v_.sum(1)
    yield "a largest value", v.amax(0), v_.max(0)


def main() -> int:
    """Prints what is wrong, and is 1 then; the device is registered."""
    torch.ocl.allow_tf32 = False
    wrong = []
    for what, computed, expected in list(
        _cases()
    ):  # all are asked for, and built side by side, before one is waited for
        error = float(np.abs(computed.detach().cpu().double().numpy() - expected).max() / np.abs(expected).max())
        if not error < _TOLERANCE:
            wrong.append(f"{what} is off by {error:.1%}")
    if wrong:
        print("; ".join(wrong))
    return int(bool(wrong))
