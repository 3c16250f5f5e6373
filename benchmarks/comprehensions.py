"""Comprehensions on the device `ocl` beside the same by eager operators on `ocl`, and by eager and compiled torch on CUDA, in
fp32 with TF32 off:

    python benchmarks/comprehensions.py --devices ocl,cuda --tune 3
    python benchmarks/comprehensions.py --devices ocl,cpu --small          what PoCL can be asked for

Every device has a process of its own. Times are milliseconds of a call, the best third of many calls in a row that are waited
for together. `launches` are kernels of a call, by operators and as a comprehension; `first` is the first call, with compiling.
`error` is the largest deviation from float64, as a share of the largest element.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

Maker = Callable[[Callable[..., torch.Tensor], dict[str, int]], tuple[Any, ...]]


@dataclass
class Case:
    """A comprehension, the same by torch, and how its inputs are made."""

    name: str
    text: str
    torch: Callable[..., Any]
    make: Maker
    sizes: dict[str, int]
    small: dict[str, int]
    train: bool = False  # forward and backward, else forward


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


ATTEND = """
def attend(float(B,H,T,D) Q, float(B,H,S,D) K, float(B,H,S,D) V) -> (O) {
    L(b,h,t,s)  +=! Q(b,h,t,d) * K(b,h,s,d)
    M(b,h,t)  max=! L(b,h,t,s)
    E(b,h,t,s)    = exp(L(b,h,t,s) - M(b,h,t))
    Z(b,h,t)    +=! E(b,h,t,s)
    A(b,h,t,e)  +=! E(b,h,t,s) * V(b,h,s,e)
    O(b,h,t,e)    = A(b,h,t,e) / Z(b,h,t)
}"""
NORM = """
def layer_norm(float(N,D) X, float(D) G, float(D) C, float eps) -> (Y) {
    S(n) +=! X(n,d)
    M(n) = S(n) / D
    V(n) +=! (X(n,d) - M(n)) * (X(n,d) - M(n))
    R(n) = rsqrt(V(n) / D + eps)
    Y(n,d) = (X(n,d) - M(n)) * R(n) * G(d) + C(d)
}"""
GROUP_NORM = """
def group_norm(float(N,G,D,H,W) X, float(G,D) A, float(G,D) C) -> (Y) {
    S(n,g) +=! X(n,g,d,h,w)
    M(n,g) = S(n,g) / (D * H * W)
    V(n,g) +=! (X(n,g,d,h,w) - M(n,g)) * (X(n,g,d,h,w) - M(n,g))
    R(n,g) = rsqrt(V(n,g) / (D * H * W) + 0.00001)
    Y(n,g,d,h,w) = (X(n,g,d,h,w) - M(n,g)) * R(n,g) * A(g,d) + C(g,d)
}"""
CROSS_ENTROPY = """
def cross_entropy(float(N,C) X, int(N) T) -> (L) {
    M(n) max=! X(n,c)
    Z(n) +=! exp(X(n,c) - M(n))
    Y(n) +=! c == T(n) ? X(n,c) : 0
    P(n) = M(n) + log(Z(n)) - Y(n)
    S +=! P(n)
    L = S / N
}"""
MASKED = """
def masked_loss(float(N) X, float(N) Y) -> (L) {
    K(n) = Y(n) > 0
    D(n) = X(n) - Y(n)
    S +=! K(n) ? (fabs(D(n)) < 1 ? 0.5 * D(n) * D(n) : fabs(D(n)) - 0.5) : 0
    C +=! K(n)
    L = S / max(C, 1)
}"""
SEGMENTATION = """
def segmentation_loss(float(N,C,H,W) X, int(N,H,W) T) -> (L) {
    K(n,h,w) = T(n,h,w) >= 0 && T(n,h,w) != 9
    M(n,h,w) max=! X(n,c,h,w)
    Z(n,h,w) +=! exp(X(n,c,h,w) - M(n,h,w))
    Y(n,h,w) +=! c == T(n,h,w) ? X(n,c,h,w) : 0
    P(n,h,w) = K(n,h,w) ? M(n,h,w) + log(Z(n,h,w)) - Y(n,h,w) : 0
    S +=! P(n,h,w)
    A +=! K(n,h,w)
    least min=! K(n,h,w) ? T(n,h,w) : -1
    most max=! K(n,h,w) ? T(n,h,w) : -1
    L = least == most ? 0 : S / A
}"""
MLP = """
def mlp(float(B,I) X, float(J,I) W1, float(J) C1, float(K,J) W2, float(K) C2, float(O,K) W3, float(O) C3) -> (Y) {
    A(b,j) +=! X(b,i) * W1(j,i)
    R(b,j) = fmax(A(b,j) + C1(j), 0)
    A2(b,k) +=! R(b,j) * W2(k,j)
    R2(b,k) = fmax(A2(b,k) + C2(k), 0)
    A3(b,o) +=! R2(b,k) * W3(o,k)
    Y(b,o) = fmax(A3(b,o) + C3(o), 0)
}"""


def mlp(x, *rest):
    for w, c in zip(rest[::2], rest[1::2], strict=True):
        x = F.relu(F.linear(x, w, c))
    return x


def masked_loss(x, y):
    keep = y > 0
    return torch.where(keep, F.smooth_l1_loss(x, y, reduction="none"), 0.0).sum() / keep.sum().clamp(min=1)


def segmentation_loss(logits, target):
    target = torch.where(target == 9, -1, target)
    labels = torch.count_nonzero(target.flatten().sort().values.diff()) + 1
    return torch.where(labels < 2, 0.0, F.cross_entropy(logits, target, ignore_index=-1))


def attend(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def kronecker(x, a, b, c):
    y = torch.einsum("mxyz,cz->mxyc", x, c)
    y = torch.einsum("mxyc,by->mxbc", y, b)
    return torch.einsum("mxbc,ax->mabc", y, a)


CASES = [
    Case(
        "product, right transposed", "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }",
        lambda a, b: a @ b.T, lambda r, s: (r(s["M"], s["K"]), r(s["N"], s["K"])),
        {"M": 4096, "N": 4096, "K": 4096}, {"M": 256, "N": 256, "K": 256},
    ),
    Case(
        "product 128 x 4096 x 16384", "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }",
        lambda a, b: a @ b.T, lambda r, s: (r(s["M"], s["K"]), r(s["N"], s["K"])),
        {"M": 128, "N": 16384, "K": 4096}, {"M": 32, "N": 512, "K": 256},
    ),
    Case(
        "batched product, 500 of 26 x 72 x 26",
        "def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }",
        lambda x, y: torch.bmm(x, y.transpose(1, 2)), lambda r, s: (r(s["B"], 26, 72), r(s["B"], 26, 72)),
        {"B": 500}, {"B": 20},
    ),
    Case(
        "group convolution", "def group(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1) -> (O)"
        " { O(n,g,f,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,f,c,kh,kw) }",
        lambda i, w: F.conv2d(i.flatten(1, 2), w.flatten(0, 1), groups=w.shape[0]),
        lambda r, s: (r(s["N"], s["G"], 16, 30, 30), r(s["G"], 16, 16, 3, 3)), {"N": 32, "G": 32}, {"N": 2, "G": 4},
    ),
    Case(
        "group norm", GROUP_NORM,
        lambda x, a, c: F.group_norm(x.flatten(1, 2), x.shape[1], a.flatten(), c.flatten()),
        lambda r, s: (r(s["N"], 32, 4, s["H"], s["H"]), r(32, 4), r(32, 4)), {"N": 64, "H": 56}, {"N": 2, "H": 14},
    ),
    Case(
        "MLP of three layers", MLP, mlp,
        lambda r, s: (r(s["B"], s["D"]), *(r(*shape) for _ in range(3) for shape in ((s["D"], s["D"]), (s["D"],)))),
        {"B": 1024, "D": 2048}, {"B": 64, "D": 128},
    ),
    Case(
        "two look-up tables", "def lut2(float(E,D) A, int(B,L) I, float(E2,D) C, int(B,L) J) -> (O, P)"
        " { O(b,d) +=! A(I(b,l),d)\n P(b,d) +=! C(J(b,l),d) }",
        lambda a, i, c, j: (F.embedding(i, a).sum(1), F.embedding(j, c).sum(1)),
        lambda r, s: (
            r(s["E"], 64), torch.randint(0, s["E"], (s["B"], 50)), r(s["E"], 64), torch.randint(0, s["E"], (s["B"], 50)),
        ), {"E": 1_000_000, "B": 4096}, {"E": 1000, "B": 32},
    ),
    Case(
        "Kronecker product of three", "def kronecker(float(M,X,Y,Z) V, float(A,X) P, float(B,Y) Q, float(C,Z) R) -> (O) {"
        " S(m,x,y,c) +=! V(m,x,y,z) * R(c,z)\n T(m,x,b,c) +=! S(m,x,y,c) * Q(b,y)\n O(m,a,b,c) +=! T(m,x,b,c) * P(a,x) }",
        kronecker, lambda r, s: (r(s["M"], 16, 16, 16), r(32, 16), r(32, 16), r(32, 16)), {"M": 256}, {"M": 4},
    ),
    Case(
        "attention", ATTEND, attend, lambda r, s: tuple(r(s["B"], s["H"], s["T"], 64) for _ in range(3)),
        {"B": 8, "H": 12, "T": 512}, {"B": 1, "H": 2, "T": 64},
    ),
    Case(
        "attention, with gradients", ATTEND, attend, lambda r, s: tuple(r(s["B"], s["H"], s["T"], 64) for _ in range(3)),
        {"B": 8, "H": 12, "T": 512}, {"B": 1, "H": 2, "T": 64}, True,
    ),
    Case(
        "layer norm", NORM, lambda x, g, c, eps: F.layer_norm(x, x.shape[1:], g, c, eps),
        lambda r, s: (r(s["N"], s["D"]), r(s["D"]), r(s["D"]), 1e-5), {"N": 16384, "D": 1024}, {"N": 256, "D": 128},
    ),
    Case(
        "layer norm, with gradients", NORM, lambda x, g, c, eps: F.layer_norm(x, x.shape[1:], g, c, eps),
        lambda r, s: (r(s["N"], s["D"]), r(s["D"]), r(s["D"]), 1e-5), {"N": 16384, "D": 1024}, {"N": 256, "D": 128}, True,
    ),
    Case(
        "softmax, cross-entropy", CROSS_ENTROPY, F.cross_entropy,
        lambda r, s: (r(s["N"], s["C"]), torch.randint(0, s["C"], (s["N"],))), {"N": 8192, "C": 8192}, {"N": 256, "C": 100},
    ),
    Case(
        "cross-entropy, with gradients", CROSS_ENTROPY, F.cross_entropy,
        lambda r, s: (r(s["N"], s["C"]), torch.randint(0, s["C"], (s["N"],))), {"N": 8192, "C": 8192}, {"N": 256, "C": 100},
        True,
    ),
    Case(
        "masked loss", MASKED, masked_loss, lambda r, s: (r(s["N"]), r(s["N"])), {"N": 1 << 24}, {"N": 1 << 14},
    ),
    Case(
        "masked loss, with gradients", MASKED, masked_loss, lambda r, s: (r(s["N"]), r(s["N"])), {"N": 1 << 24}, {"N": 1 << 14},
        True,
    ),
    Case(
        "the segmentation sample's loss", SEGMENTATION, segmentation_loss,
        lambda r, s: (r(s["N"], 10, s["H"], s["H"]), torch.randint(-1, 10, (s["N"], s["H"], s["H"]))),
        {"N": 64, "H": 128}, {"N": 2, "H": 32},
    ),
    Case(
        "segmentation, with gradients", SEGMENTATION, segmentation_loss,
        lambda r, s: (r(s["N"], 10, s["H"], s["H"]), torch.randint(-1, 10, (s["N"], s["H"], s["H"]))),
        {"N": 64, "H": 128}, {"N": 2, "H": 32}, True,
    ),
]  # fmt: skip


def arguments(case: Case, sizes: dict[str, int], device: str) -> list[Any]:
    torch.manual_seed(0)
    made = [x.to(device) if isinstance(x, torch.Tensor) else x for x in case.make(randn, sizes)]
    return [
        x.requires_grad_() if case.train and isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in made
    ]


def tensors(result: Any) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def call(case: Case, function: Callable[..., Any], args: list[Any]) -> Callable[[], tuple[torch.Tensor, ...]]:
    inputs = [x for x in args if isinstance(x, torch.Tensor) and x.requires_grad]
    given: list[torch.Tensor] = []

    def run() -> tuple[torch.Tensor, ...]:
        results = tensors(function(*args))
        if not case.train:
            return results
        if not given:
            given.extend(torch.ones_like(x) / x.numel() for x in results)
        return (*results, *torch.autograd.grad(results, inputs, given))

    return run


def milliseconds(run: Callable[[], Any], wait: Callable[[], None], seconds: float) -> float:
    run()
    wait()
    begin = time.perf_counter()
    run()
    wait()
    again = max(1, min(100, int(0.02 / (time.perf_counter() - begin))))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 60):
        begin = time.perf_counter()
        for _ in range(again):
            run()
        wait()
        times.append((time.perf_counter() - begin) / again)
    return sorted(times)[len(times) // 3] * 1e3


def deviation(case: Case, sizes: dict[str, int], run: Callable[[], tuple[torch.Tensor, ...]]) -> float:
    """From float64 on the CPU, at the small sizes."""
    args = [
        x.detach().double() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in arguments(case, sizes, "cpu")
    ]
    args = [
        x.requires_grad_() if case.train and isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in args
    ]
    right = [x.detach() for x in call(case, case.torch, args)()]
    found = [x.detach().cpu().double().reshape(y.shape) for x, y in zip(run(), right, strict=True)]
    return max(float((x - y).abs().max() / y.abs().max().clamp(min=1e-30)) for x, y in zip(found, right, strict=True))


def on_device(device: str, cases: list[Case], small: bool, seconds: float, tuning: float, hold: bool) -> None:
    """Prints a line of JSON for each case."""
    if device != "cuda":
        import syncscope.kernels
        from syncscope.kernels import comprehension

    wait = {"ocl": lambda: torch.ocl.synchronize(), "cuda": lambda: torch.cuda.synchronize(), "cpu": lambda: None}[
        device
    ]
    compiled = {}
    for case in cases if device == "cuda" else []:
        with contextlib.suppress(Exception):
            run = call(case, torch.compile(case.torch), arguments(case, case.small if small else case.sizes, device))
            run()
            compiled[case.name] = run
    if hold:
        sys.stdin.readline()
    for case in cases:
        row: dict[str, Any] = {"name": case.name, "device": device}
        sizes = case.small if small else case.sizes
        try:
            args = arguments(case, sizes, device)
            eager = call(case, case.torch, args)
            if device == "ocl":
                function = comprehension(case.text)
                run = call(case, function, args)
                begin = time.perf_counter()
                run()
                wait()
                row["first"] = time.perf_counter() - begin
                for key, one in (("launches", run), ("launches eager", eager)):
                    one()
                    before = syncscope.kernels.queue.launches
                    one()
                    row[key] = syncscope.kernels.queue.launches - before
                row["error"] = deviation(case, case.small, call(case, function, arguments(case, case.small, device)))
                row["ms"] = milliseconds(run, wait, seconds)
                row["kernels"] = [ready.kernel for made in function._made.values() for ready in made.plan.units]
                if tuning and not case.train:
                    row["tuned"] = function.tune(*args, seconds=tuning, quiet=True)
                    row["ms tuned"] = milliseconds(run, wait, seconds)
                    row["explain"] = function.explain(*args)
            if case.name in compiled:
                row["ms compiled"] = milliseconds(compiled.pop(case.name), wait, seconds)
            row["ms eager"] = milliseconds(eager, wait, seconds)
        except Exception as error:  # one that fails must not take the others along
            row["failed"] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        print(json.dumps(row), flush=True)


def table(rows: list[dict[str, Any]], devices: list[str]) -> None:
    found = {(row["name"], row["device"]): row for row in rows}
    other = next((d for d in devices if d != "ocl"), "")
    head = [
        "",
        "launches",
        "first s",
        "error",
        "comprehension",
        "tuned",
        "eager ocl",
        f"eager {other}",
        "compiled",
        "x ocl",
        f"x {other}",
        "x compiled",
    ]
    print(" | ".join(head))

    def said(value: float | None) -> str:
        return "-" if value is None else f"{value:.3g}"

    for case in CASES:
        a, b = found.get((case.name, "ocl"), {}), found.get((case.name, other), {})
        if not a:
            continue
        own = min(x for x in (a.get("ms"), a.get("ms tuned"), float("inf")) if x is not None)

        def ratio(value: float | None, own: float = own) -> str:
            return "-" if value is None or own == float("inf") else f"{value / own:.2f}"

        cells = [
            case.name, f"{a.get('launches eager', '-')} to {a.get('launches', '-')}",
            *(said(a.get(x)) for x in ("first", "error")),
            *(said(a.get(x)) for x in ("ms", "ms tuned", "ms eager")), *(said(b.get(x)) for x in ("ms eager", "ms compiled")),
            ratio(a.get("ms eager")), ratio(b.get("ms eager")), ratio(b.get("ms compiled")),
        ]  # fmt: skip
        print(" | ".join(cells) + (f"  {a['failed']}" if "failed" in a else ""))


def start(device: str, stdin: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--here", device, *sys.argv[1:]]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="ocl,cpu")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds for each comprehension, on ocl")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    args = parser.parse_args()
    cases = [case for case in CASES if args.only in case.name]
    if args.here:
        on_device(args.here, cases, args.small, args.seconds, args.tune, args.here == "cuda")
        return 0
    rows = []
    devices = args.devices.split(",")
    # torch.compile works on the host while another device is measured; then CUDA is told to begin.
    begun = {device: start(device, subprocess.PIPE) for device in devices if device == "cuda"}
    for device in devices:
        child = begun.get(device) or start(device, subprocess.DEVNULL)
        if child.stdin:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write("\n")
                child.stdin.flush()
        for line in child.stdout or ():
            if line.startswith('{"name"'):
                rows.append(json.loads(line))
                print(line.strip(), file=sys.stderr, flush=True)
        child.wait()
    table(rows, devices)
    return int(len(rows) < len(devices) * len(cases) or any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
