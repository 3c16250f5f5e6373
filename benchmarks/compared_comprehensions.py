"""The comprehensions of `benchmarks/comprehensions.py`, each beside the same by torch; the tests look at them, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
def attend(float(B,H,T,D) Q, float(B,H,S,D) K, float(B,H,S,F) V) -> (O) {
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


def mlp(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    for w, c in zip(rest[::2], rest[1::2], strict=True):
        x = F.relu(F.linear(x, w, c))
    return x


def masked_loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    keep = y > 0
    return torch.where(keep, F.smooth_l1_loss(x, y, reduction="none"), 0.0).sum() / keep.sum().clamp(min=1)


def segmentation_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    target = torch.where(target == 9, -1, target)
    labels = torch.count_nonzero(target.flatten().sort().values.diff()) + 1
    return torch.where(labels < 2, 0.0, F.cross_entropy(logits, target, ignore_index=-1))


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def kronecker(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
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
        lambda i, w: F.conv2d(i.flatten(1, 2), w.flatten(0, 1), groups=w.shape[0]).unflatten(1, w.shape[:2]),
        lambda r, s: (r(s["N"], s["G"], 16, 30, 30), r(s["G"], 16, 16, 3, 3)), {"N": 32, "G": 32}, {"N": 2, "G": 4},
    ),
    Case(
        "group norm", GROUP_NORM,
        lambda x, a, c: F.group_norm(x.flatten(1, 2), x.shape[1], a.flatten(), c.flatten()).view_as(x),
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
        "layer norm", NORM, lambda x, g, c, eps: F.layer_norm(x, x.shape[1:], g, c, eps),
        lambda r, s: (r(s["N"], s["D"]), r(s["D"]), r(s["D"]), 1e-5), {"N": 16384, "D": 1024}, {"N": 256, "D": 128},
    ),
    Case(
        "softmax, cross-entropy", CROSS_ENTROPY, F.cross_entropy,
        lambda r, s: (r(s["N"], s["C"]), torch.randint(0, s["C"], (s["N"],))), {"N": 8192, "C": 8192}, {"N": 256, "C": 100},
    ),
    Case(
        "masked loss", MASKED, masked_loss, lambda r, s: (r(s["N"]), r(s["N"])), {"N": 1 << 24}, {"N": 1 << 14},
    ),
    Case(
        "the segmentation sample's loss", SEGMENTATION, segmentation_loss,
        lambda r, s: (r(s["N"], 10, s["H"], s["H"]), torch.randint(-1, 10, (s["N"], s["H"], s["H"]))),
        {"N": 64, "H": 128}, {"N": 2, "H": 32},
    ),
]  # fmt: skip
# Look-up tables have no derived gradient: two elements may be the same one of the table.
CASES += [replace(c, name=f"{c.name}, with gradients", train=True) for c in CASES if "look-up" not in c.name]
