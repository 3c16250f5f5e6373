"""Comprehensions: what they compute on every device, their gradients, and which of their statements share kernels."""

import pytest
import torch
from comprehension_cases import ATTEND, CASES, OTHERS, close, moved, tensors
from effort import SEARCHING

from syncscope.kernels import comprehension, queue
from syncscope.kernels.comprehensions.products import Product
from syncscope.kernels.comprehensions.words import NotationError

NAMES = [name for name, *_ in CASES + OTHERS]
# What runs on the device each time: each shape of kernel once.
KERNELS = (
    "product bilinear chain row_sums column_sums diagonal reversed rolled padded conv1 conv2 grouped depthwise max_pool "
    "multiplied batch_norm softmax attend cross_entropy masked_loss gated going_on several large number places table "
    "bag integers truth small steps repeated quotients no_number in_place in_part guarded"
).split()
ON_DEVICE = (
    "conv2",
    "grouped",
    "attend",
    "layer_norm",
    "batch_norm",
    "cross_entropy",
    "masked_loss",
    "max_pool",
    "large",
    "bilinear",
    "repeated",
)


@pytest.mark.parametrize(("name", "text", "inputs", "reference"), CASES + OTHERS, ids=NAMES)
def test_it_computes_what_torch_does(name, text, inputs, reference):
    function = comprehension(text)
    expected = reference(*inputs)
    close(function(*inputs), expected, 1e-9)
    if any(x.dtype == torch.float64 for x in inputs if isinstance(x, torch.Tensor)) and "float64" in text:
        return  # it insists on a dtype that some devices do not have
    if name not in KERNELS and not SEARCHING:
        return
    close(function(*moved(inputs, "ocl", torch.float32)), expected, 2e-4)
    assert function.made(moved(inputs, "ocl", torch.float32)).plan is not None


@pytest.mark.parametrize(("name", "text", "inputs", "reference"), CASES, ids=[name for name, *_ in CASES])
def test_its_gradient_is_torchs(name, text, inputs, reference):
    for function, device in (
        (comprehension(text), "cpu"),
        *([(comprehension(text), "ocl")] if name in ON_DEVICE else []),
    ):
        own = moved(inputs, device, torch.float32 if device == "ocl" else torch.float64, True)
        others = moved(inputs, "cpu", torch.float64, True)
        for results in (tensors(function(*own)), tensors(reference(*others))):
            weights = [
                torch.arange(1, x.numel() + 1, dtype=torch.float64).reshape(x.shape) / x.numel() for x in results
            ]
            torch.autograd.backward(
                results, [w.to(x.dtype).to(x.device) for w, x in zip(weights, results, strict=True)]
            )
        for x, y in zip(own, others, strict=True):
            if isinstance(x, torch.Tensor) and y.is_floating_point():
                close(x.grad, torch.zeros_like(y) if y.grad is None else y.grad, 1e-3 if device == "ocl" else 1e-9)


@pytest.mark.parametrize("name", ["conv1", "attend", "layer_norm", "max_pool", "going_on", "multiplied"])
def test_gradients_of_comprehensions_pass_gradcheck(name):
    text, inputs = next((text, inputs) for n, text, inputs, _ in CASES if n == name)
    small = [x[tuple(slice(0, 5) for _ in x.shape)] if isinstance(x, torch.Tensor) else x for x in inputs]
    assert torch.autograd.gradcheck(comprehension(text), moved(small, "cpu", torch.float64, True))


def test_of_equals_the_first_has_the_gradient_as_with_torch_max():
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    y = x.detach().clone().requires_grad_()
    comprehension("def most(float(N,M) X) -> (C) { C(n) max=! X(n,m) }")(x).sum().backward()
    y.max(1).values.sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_a_maximum_that_only_keeps_exp_from_overflow_has_no_gradient():
    softmax = comprehension(next(text for name, text, *_ in CASES if name == "softmax"))
    assert "d_M" not in softmax.grad
    counts = comprehension("def f(float(N,M) X) -> (Y) { A(n) max=! X(n,m)\n Y(n,m) = exp(X(n,m) - A(n)) }")
    assert "d_A" in counts.grad
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(softmax, (x,))
    assert torch.autograd.gradcheck(counts, (x,))


@pytest.mark.parametrize("device", ["cpu", "ocl"])
def test_what_depends_on_no_input_has_no_gradient(device):
    x = torch.ones(1, device=device, requires_grad=True)
    comprehension("def four(float(1) A) -> (C) { C(i) = 4.0 where exists A(i) }")(x).sum().backward()
    assert x.grad is None


def test_a_product_with_zeros_has_its_gradient():
    x = torch.tensor([[0.0, 3.0, 2.0], [0.0, 0.0, 2.0]], requires_grad=True)
    comprehension("def product(float(N,M) X) -> (C) { C(n) *=! X(n,m) }")(x).sum().backward()
    assert x.grad.tolist() == [[6, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("device", ["cpu", "ocl"])
def test_only_what_the_gradient_takes_is_kept_for_it(device):
    saved = []
    function = comprehension(ATTEND)
    q, k, v = (torch.randn(1, 2, *shape).to(device).requires_grad_() for shape in ((5, 3), (7, 3), (7, 4)))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(tuple(x.shape[2:])) or x, lambda x: x):
        function(q, k, v)  # of L, M, E, Z, A and O, and the inputs
        assert sorted(saved) == sorted([(5, 3), (7, 3), (7, 4), (5, 7), (5,), (5, 4)])
        saved.clear()
        function(q.detach(), k.detach(), v)  # only E and Z
        assert sorted(saved) == [(5,), (5, 7)]


def test_no_memory_stays_but_results_and_what_the_gradient_takes():
    function = comprehension(ATTEND)
    q = torch.randn(2, 4, 64, 32).to("ocl").requires_grad_()
    function(q, q, q).sum().backward()
    q.grad = None
    before = torch.ocl.memory_allocated()
    out = function(q, q, q)
    rows = 2 * 4 * 64
    assert torch.ocl.memory_allocated() - before == 4 * rows * (32 + 64 + 1)  # O, E and Z
    del out
    assert torch.ocl.memory_allocated() == before


def test_the_gradient_can_be_printed_and_is_a_comprehension_again():
    text = comprehension("def correlate(float(N) A, float(K) B) -> (C) { C(i) +=! A(i+k) * B(k) }").grad
    assert text == (
        "def correlate_grad(float(N) A, float(K) B, float(N - K + 1) d_C) -> (d_A, d_B) {\n"
        "    d_A(a0) +=! d_C(a0 - k) else 0 * B(k) where a0 in 0:N\n"
        "    d_B(k) +=! d_C(i) * A(i + k)\n"
        "}"
    )
    a, b, d = torch.randn(6), torch.randn(3), torch.randn(4)
    found = comprehension(text)(a, b, d)
    close(found[1], torch.stack([(d * a[k : k + 4]).sum() for k in range(3)]), 1e-5)


def test_a_given_backward_takes_the_place_of_one_that_cannot_be_derived():
    text = "def table(float(N,D) A, int(M) I) -> (C) { C(m,d) = A(I(m),d) }"
    a, i = torch.randn(5, 2, requires_grad=True), torch.tensor([1, 1, 4])
    with pytest.raises(NotationError, match="read where data decides"):
        comprehension(text)(a, i).sum().backward()
    gather = comprehension(text, backward=lambda a, i, d: (torch.zeros_like(a).index_add(0, i, d), None))
    gather(a, i).sum().backward()
    assert a.grad[:, 0].tolist() == [0, 2, 0, 0, 1]


def test_what_is_read_outside_is_zero_where_data_decides():
    function = comprehension("def table(float(N) A, int(M) I) -> (C) { C(m) = A(I(m)) }")
    for device in ("cpu", "ocl"):
        made = function(torch.arange(1.0, 6).to(device), torch.tensor([4, 0, -1, 9]).to(device))
        assert made.cpu().tolist() == [5, 1, 0, 0]


@pytest.mark.parametrize(
    ("name", "kernels"),
    [("attend", 3), ("softmax", 1), ("layer_norm", 1), ("cross_entropy", 2), ("masked_loss", 2), ("perceptron", 1),
     ("gated", 1), ("max_pool", 1), ("grouped", 1), ("conv2", 1), ("several", 2), ("chain", 2), ("large", 2),
     ("in_place", 1), ("named_again", 1), ("going_on", 1)],
)  # fmt: skip
def test_statements_that_can_share_a_kernel_do(name, kernels):
    text, inputs = next((text, inputs) for n, text, inputs, _ in CASES if n == name)
    made = comprehension(text).made(moved(inputs, "ocl", torch.float32))
    assert len(made.plan.units) == kernels, [ready.kernel for ready in made.plan.units]


def test_products_go_to_the_generator():
    for name in ("product", "conv1", "conv2", "grouped", "attend", "perceptron", "bilinear"):
        text, inputs = next((text, inputs) for n, text, inputs, _ in CASES if n == name)
        units = comprehension(text).made(moved(inputs, "ocl", torch.float32)).plan.units
        assert any(isinstance(ready.unit, Product) for ready in units), name


def test_a_call_does_not_wait_and_is_seen_by_observers():
    function = comprehension(ATTEND)
    q = torch.randn(1, 2, 16, 8).to("ocl")
    function(q, q, q)
    seen, waits = [], []
    queue.observers.append(lambda name, *_: seen.append(name))
    queue.readers.append(lambda *_: waits.append(1))
    try:
        function(q, q, q)
    finally:
        queue.observers.pop()
        queue.readers.pop()
    assert [name.partition(" at ")[0] for name in seen] == ["comprehension::attend"]
    assert seen[0].rpartition(":")[0].endswith("test_comprehensions.py")
    assert not waits


def test_half_precision_views_and_numbers_keep_their_dtype():
    function = comprehension("def scale(float(N,M) X, float a) -> (Y) { S(n) +=! X(n,m)\n Y(n,m) = X(n,m) * a + S(n) }")
    x = torch.randn(8, 6)
    for dtype in (torch.float16, torch.bfloat16):
        y = x.to(dtype)
        made = function(y.to("ocl").T, 0.5)
        assert made.dtype == dtype
        close(made, (y.float().T * 0.5 + y.float().T.sum(1, keepdim=True)).to(dtype), 4e-2)
