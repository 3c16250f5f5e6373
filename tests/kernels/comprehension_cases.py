"""Comprehensions and what torch says of the same: name, text, inputs, and the function of torch on those inputs."""

import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from compared_comprehensions import ATTEND as ATTEND
from compared_comprehensions import CASES as COMPARED

_generator = torch.Generator().manual_seed(3)


def r(*shape):
    return torch.randn(*shape, generator=_generator, dtype=torch.float64)


def whole(below, *shape):
    return torch.randint(0, below, shape, generator=_generator)


def einsum(name, subscripts, *inputs):
    """The comprehension that einsum's letters say."""
    given, out = subscripts.split("->")
    terms = given.split(",")
    sizes = dict(zip("".join(terms), "".join(terms).upper(), strict=True))
    tensors = [f"float({','.join(sizes[x] for x in term)}) X{i}" for i, term in enumerate(terms)]
    reads = " * ".join(f"X{i}({','.join(term)})" for i, term in enumerate(terms))
    op = "+=!" if set("".join(terms)) - set(out) else "="
    text = f"def {name}({', '.join(tensors)}) -> (Out) {{ Out({','.join(out)}) {op} {reads} }}"
    return name, text, inputs, lambda *xs: torch.einsum(subscripts, *xs)


CONV1 = "def conv1(float(N,C,W) I, float(O,C,K) F, int S, int P, int D) -> (R)"
CONV2 = "def conv2(float(N,C,H,W) I, float(O,C,KH,KW) F, float(O) B, int S, int P) -> (R)"
NORM = """
def {name}(float(N,C,W) X, float(C) G) -> (Y) {{
    S({p}) +=! X(n,c,w)
    M({p}) = S({p}) / ({count})
    V({p}) +=! (X(n,c,w) - M({p})) * (X(n,c,w) - M({p}))
    R({p}) = rsqrt(V({p}) / ({count}) + 0.00001)
    Y(n,c,w) = (X(n,c,w) - M({p})) * R({p}) * G(c)
}}"""


def norm(x, g, dims):
    mean, var = x.mean(dims, keepdim=True), x.var(dims, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + 1e-5) * g[:, None]


def in_part(a):
    c = a + F.pad(a[1:] * a[:-1], (1, 0))
    c = torch.cat([c[:2], 3 * c[2:4], c[4:]])
    c = torch.cat([torch.maximum(c[:-1], torch.maximum(a[:-1], a[1:])), c[-1:]])
    return torch.cat([2 * c[:1], c[1:]])


def one(name, signature, body, inputs, reference):
    return name, f"def {name}({signature}) -> (C) {{ {body} }}", inputs, reference


CASES = [
    einsum("product", "ik,kj->ij", r(9, 17), r(17, 12)),
    einsum("turned", "ki,jk->ij", r(10, 9), r(11, 10)),
    einsum("batched", "bik,bkj->bij", r(3, 9, 8), r(3, 8, 10)),
    einsum("outer", "i,j->ij", r(4), r(5)),
    einsum("trace_of_product", "ij,ji->", r(5, 6), r(6, 5)),
    einsum("bilinear", "bi,oij,bj->bo", r(9, 5), r(8, 5, 6), r(9, 6)),
    einsum("hadamard", "ij,ij->ij", r(4, 5), r(4, 5)),
    einsum("matrix_vector", "ij,j->i", r(6, 40), r(40)),
    einsum("permuted", "abc->cab", r(3, 4, 5)),
    einsum("row_sums", "ij->i", r(7, 50)),
    einsum("column_sums", "ij->j", r(50, 7)),
    einsum("tensordot", "abcd,cdef->abef", r(3, 4, 4, 5), r(4, 5, 4, 3)),
    einsum("chain", "ij,jk,kl->il", r(9, 10), r(10, 11), r(11, 12)),
    one("diagonal", "float(N,N) A", "C(i) = A(i,i)", (r(5, 5),), torch.diagonal),
    one("trace", "float(N,N) A", "C +=! A(i,i)", (r(5, 5),), torch.trace),
    one("reversed", "float(N) A", "C(i) = A(N-1-i)", (r(6),), lambda a: a.flip(0)),
    one("strided", "float(N) A", "C(i) = A(3*i+1)", (r(11),), lambda a: a[1::3]),
    one("repeated", "float(N) A", "C(i) = A(i/2) where i in 0:2*N", (r(5),), lambda a: a.repeat_interleave(2)),
    one("first_half", "float(N) A", "C +=! A(k+1) where k in 0:N/2", (r(7),), lambda a: a[1:4].sum()),
    one("quotients", "float(N) A", "C(i) = i//2 * A(i) + (-i)//3", (r(7),),
        lambda a: torch.arange(7) // 2 * a + -torch.arange(7) // 3),
    one("rolled", "float(N) A", "C(i) = A((i+2)%N) where i in 0:N", (r(5),), lambda a: a.roll(-2)),
    one("padded", "float(N) A", "C(i) = A(i-2) else 0 where i in 0:N+3", (r(5),), lambda a: F.pad(a, (2, 1))),
    one("mirrored", "float(N) A", "C(i) = A(i-2) else (A(N-i) else A(0)) where i in 0:N+2", (r(5),),
        lambda a: torch.stack([a[0], a[4], a[0], a[1], a[2], a[3], a[4]])),
    one("shifted", "float(N) A", "C(i) = A(i+1) - A(i)", (r(6),), torch.diff),
    one("windows", "float(N) A, int K", "C(i,k) = A(i+k) where k in 0:K", (r(8), 3), lambda a, k: a.unfold(0, k, 1)),
    one("moving", "float(N) A, int K", "C(i) +=! A(i+k)/K where k in 0:K", (r(9), 3),
        lambda a, k: F.avg_pool1d(a[None], k, 1)[0]),
    ("conv1", CONV1 + " { R(n,o,w) +=! I(n,c,S*w+D*k-P) else 0 * F(o,c,k) where w in 0:(W+2*P-D*(K-1)-1)/S+1 }",
     (r(2, 9, 14), r(8, 9, 3), 2, 1, 2), lambda i, f, s, p, d: F.conv1d(i, f, stride=s, padding=p, dilation=d)),
    ("conv2", CONV2 + " { X(n,o,h,w) +=! I(n,c,S*h+kh-P,S*w+kw-P) else 0 * F(o,c,kh,kw) where"
     + " h in 0:(H+2*P-KH)/S+1, w in 0:(W+2*P-KW)/S+1\n R(n,o,h,w) = max(X(n,o,h,w) + B(o), 0) }",
     (r(2, 8, 7, 6), r(9, 8, 3, 3), r(9), 1, 1), lambda i, f, b, s, p: F.relu(F.conv2d(i, f, b, stride=s, padding=p))),
    ("conv3", "def conv3(float(N,C,A,B,D) I, float(O,C,K,L,M) F) -> (R) { R(n,o,a,b,d) +=! I(n,c,a+k,b+l,d+m) * F(o,c,k,l,m) }",
     (r(1, 2, 5, 4, 4), r(3, 2, 2, 3, 2)), F.conv3d),
    ("grouped", ("def grouped(float(N,G,C,H,W) I, float(G,F,C,K,L) W1) -> (R) {"
      " R(n,g,f,h,w) +=! I(n,g,c,h+k,w+l) * W1(g,f,c,k,l) }"),
     (r(2, 2, 8, 5, 5), r(2, 8, 8, 3, 3)),
     lambda i, w: F.conv2d(i.flatten(1, 2), w.flatten(0, 1), groups=2).unflatten(1, (2, 8))),
    ("depthwise", "def depthwise(float(N,C,H,W) I, float(C,K,L) F) -> (R) { R(n,c,h,w) +=! I(n,c,h+k,w+l) * F(c,k,l) }",
     (r(2, 3, 6, 5), r(3, 3, 2)), lambda i, f: F.conv2d(i, f[:, None], groups=3)),
    one("max_pool", "float(N,D,H,W) X",
        "P(n,d,h,w) max=! X(n,d,2*h+i,2*w+j) where i in 0:3, j in 0:2\n C(n,d,h,w) = P(n,d,h,w)",
        (r(2, 2, 7, 6),), lambda x: F.max_pool2d(x, (3, 2), 2)),
    one("padded_pool", "float(N,W) X", "P(n,w) max=! X(n,2*w+i-1) else -inf where i in 0:3, w in 0:(W-1)/2+1\n C(n,w) = P(n,w)",
        (r(2, 9),), lambda x: F.max_pool1d(x, 3, 2, 1)),
    one("least", "float(N,M) X", "C(n) min=! X(n,m)", (r(4, 30),), lambda x: x.amin(1)),
    one("multiplied", "float(N,M) X", "C(n) *=! X(n,m)", (r(4, 5),), lambda x: x.prod(1)),
    ("batch_norm", NORM.format(name="batch_norm", p="c", count="N * W"), (r(3, 4, 5), r(4)), lambda x, g: norm(x, g, (0, 2))),
    ("instance_norm", NORM.format(name="instance_norm", p="n,c", count="W"), (r(3, 4, 50), r(4)), lambda x, g: norm(x, g, 2)),
    ("softmax", ("def softmax(float(N,C) X) -> (Y) {"
      " M(n) max=! X(n,c)\n Z(n) +=! exp(X(n,c)-M(n))\n Y(n,c) = exp(X(n,c)-M(n))/Z(n) }"),
     (r(5, 70),), lambda x: x.softmax(1)),
    ("kron", "def kron(float(A,B) X, float(C,D) Y) -> (K) { K(a,c,b,d) = X(a,b) * Y(c,d) }", (r(3, 2), r(2, 4)),
     lambda x, y: torch.kron(x, y).reshape(3, 2, 2, 4)),
    ("perceptron", ("def perceptron(float(B,I) X, float(O,I) W, float(O) C) -> (Y) { A(b,o) +=! X(b,i) * W(o,i)\n"
      " Y(b,o) = tanh(A(b,o) + C(o)) }"), (r(9, 10), r(8, 10), r(8)), lambda x, w, c: torch.tanh(F.linear(x, w, c))),
    ("gated", ("def gated(float(B,I) X, float(O,I) W, float(B,O) G) -> (Y) { A(b,o) +=! X(b,i) * W(o,i)\n"
      " Y(b,o) = A(b,o) * G(b,o) }"),
     (r(9, 10), r(8, 10), r(9, 8)), lambda x, w, g: x @ w.T * g),
    ("going_on", "def going_on(float(N,M) A, float(N) B) -> (C) { C(i) = B(i)\n C(i) += A(i,j)*A(i,j) where j in 1:M }",
     (r(3, 4), r(3)), lambda a, b: b + (a[:, 1:] ** 2).sum(1)),
    one("in_place", "float(B,I) X, float(O,I) W, float(O) D",
        "C(b,o) +=! X(b,i) * W(o,i)\n C(b,o) = C(b,o) + D(o)\n C(b,o) = fmax(C(b,o), 0)",
        (r(9, 10), r(8, 10), r(8)), lambda x, w, c: F.relu(F.linear(x, w, c))),
    one("named_again", "float(N,D) I",
        "t(n) max=! I(n,d)\n C(n,d) = exp(I(n,d) - t(n))\n t(n) +=! C(n,d)\n C(n,d) = C(n,d) / t(n)",
        (r(5, 9),), lambda x: x.softmax(1)),
    one("in_part", "float(N) A",
        "C(i) = A(i)\n C(i) += A(i) * A(i-1)\n C(i) = 3 * C(i) where i in 2:4\n C(i) max= A(i+k) where k in 0:2\n"
        " C(i) *= 2 where i in 0:1", (r(9),), in_part),
    one("guarded", "float(N) A, int D", "C(i) = i >= D ? A(i-D) + A(i) : A(i) where i in 0:N", (r(7), 3),
        lambda a, d: a + F.pad(a[:-d], (d, 0))),
    ("names_of_gradients", """def product_grad(float(M,K) A, float(K,N) B, float(M,N) d_C) -> (d_A, d_B) {
        d_A(m,k) +=! d_C(m,n) * B(k,n)
        d_B(k,n) +=! d_C(m,n) * A(m,k) }""", (r(5, 4), r(4, 3), r(5, 3)), lambda a, b, d: (d @ b.T, a.T @ d)),
    ("several", "def several(float(N,M) A) -> (S, M1, L) { S(m) +=! A(n,m)\n M1(m) max=! A(n,m)\n L(n) = A(n,0) }", (r(40, 6),),
     lambda a: (a.sum(0), a.amax(0), a[:, 0])),
    ("large", "def large(float(N) A) -> (S, M) { S +=! A(i)*A(i)\n M max=! A(i) }", (r(40_000),),
     lambda a: ((a * a).sum(), a.amax())),
    ("distances", ("def distances(float(N,D) A, float(M,D) B) -> (R) { S(n,m) +=! (A(n,d)-B(m,d))*(A(n,d)-B(m,d))\n"
      " R(n,m) = sqrt(S(n,m)) }"),
     (r(5, 3), r(6, 3)), torch.cdist),
    ("gelu", "def gelu(float(N) X) -> (Y) { Y(i) = 0.5 * X(i) * (1 + erf(X(i) * A)) where A = 0.7071067811865476 }", (r(9),),
     F.gelu),
    ("number", "def number(float(N) X, float a) -> (Y) { Y(i) = pow(fabs(X(i)), a) + X.0 }", (r(5), 1.5),
     lambda x, a: x.abs() ** a + 5),
    ("places", "def places(float(N) X) -> (Y) { Y(i) = X(i) * i + N }", (r(5),), lambda x: x * torch.arange(5) + 5),
]  # fmt: skip

# What has no gradient, or none that is derived.
OTHERS = [
    ("table", "def table(float(N,D) A, int(M) I) -> (C) { C(m,d) = A(I(m),d) }", (r(7, 3), whole(7, 5)), lambda a, i: a[i]),
    ("bag", "def bag(float(N,D) A, int(B,L) I) -> (C) { C(b,d) +=! A(I(b,l),d) }", (r(7, 3), whole(7, 4, 6)),
     lambda a, i: a[i].sum(1)),
    ("counted", "def counted(int(N,M) A) -> (C) { C(n) +=! A(n,m) > 2 }", (whole(5, 3, 9),), lambda a: (a > 2).sum(1)),
    ("integers", "def integers(int(N) A, int(N) B) -> (C, D) { C(i) = A(i) * B(i) % 3\n D(i) = A(i) / B(i) }",
     (whole(9, 5), 1 + whole(4, 5)), lambda a, b: (a * b % 3, a / b)),
    ("truth", "def truth(bool(N) A, bool(N) B) -> (C) { C(i) = A(i) && !B(i) || A(i) == B(i) }",
     (whole(2, 9) > 0, whole(2, 9) > 0), lambda a, b: (a & ~b) | (a == b)),
    ("small", "def small(int8(N) A) -> (C, S) { C(i) = A(i) + A(i)\n S +=! A(i) }", (whole(100, 9).to(torch.int8),),
     lambda a: (a + a, a.sum())),
    ("narrowed", "def narrowed(float64(N) A) -> (C) { C(i) = int32(float32(A(i)) * 10) }", (r(9),),
     lambda a: (a.float() * 10).int()),
    ("no_number", "def no_number(float(N) A) -> (C) { C(i) = A(i) != A(i) ? 0 : A(i) }",
     (torch.tensor([1.0, float("nan"), 3.0]),),
     lambda a: a.nan_to_num()),
    ("steps", "def steps(float(N) A) -> (C) { C(i) = floor(A(i)) + ceil(A(i)) + trunc(A(i)) + round(A(i)) }", (r(9),),
     lambda a: a.floor() + a.ceil() + a.trunc() + a.round()),
]  # fmt: skip
# Those that the benchmark compares, at the sizes of a CPU.
for case in COMPARED:
    name = re.search(r"def (\w+)", case.text)[1]
    if not case.train and name not in [known for known, *_ in CASES + OTHERS]:
        given = case.make(r, case.small)
        (OTHERS if name == "lut2" else CASES).append((name, case.text, given, case.torch))
assert len(CASES) + len(OTHERS) > 40


def tensors(results):
    return results if isinstance(results, tuple) else (results,)


def close(found, expected, tolerance):
    for a, b in zip(tensors(found), tensors(expected), strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a.detach().cpu().to(b.dtype), b.detach(), rtol=tolerance, atol=tolerance)


def moved(args, device, dtype, grad=False):
    def one(x):
        if not isinstance(x, torch.Tensor):
            return x
        x = x.detach().clone().to(device)  # the cases are everybody's
        x = x.to(dtype) if x.is_floating_point() else x
        return x.requires_grad_() if grad and x.is_floating_point() else x

    return [one(x) for x in args]
