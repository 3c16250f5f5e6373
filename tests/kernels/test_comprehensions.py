"""Comprehensions: the notation, what it computes on every device, its gradients, its kernels under any schedule, its errors."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from comprehension_cases import ATTEND, CASES, OTHERS
from comprehension_interpreter import interpret
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscope.errors import UserError
from syncscope.kernels import comprehension, queue
from syncscope.kernels.comprehension import on_ocl, schedules
from syncscope.kernels.comprehension.functions import FUNCTIONS
from syncscope.kernels.comprehension.notation import parse
from syncscope.kernels.comprehension.products import Product
from syncscope.kernels.comprehension.statements import show_function
from syncscope.kernels.comprehension.words import NotationError

# Each kernel that is met takes PoCL a tenth of a second: SYNCSCOPE_EXAMPLES=20 looks at twenty times as many.
TIMES = int(os.environ.get("SYNCSCOPE_EXAMPLES", "1"))
FEW = settings(max_examples=4 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=40 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = [name for name, *_ in CASES + OTHERS]
# What runs on the device each time: each shape of kernel once.
KERNELS = (
    "product bilinear chain row_sums column_sums diagonal reversed rolled padded conv1 conv2 grouped depthwise max_pool "
    "multiplied batch_norm softmax attend cross_entropy masked_loss gated going_on several large number places table "
    "bag integers truth small steps repeated quotients"
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


@pytest.mark.parametrize(("name", "text", "inputs", "reference"), CASES + OTHERS, ids=NAMES)
def test_it_computes_what_torch_does(name, text, inputs, reference):
    function = comprehension(text)
    expected = reference(*inputs)
    close(function(*inputs), expected, 1e-9)
    if any(x.dtype == torch.float64 for x in inputs if isinstance(x, torch.Tensor)) and "float64" in text:
        return  # it insists on a dtype that some devices do not have
    if name not in KERNELS and TIMES == 1:
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
def test_gradcheck_in_float64(name):
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


def test_a_product_with_zeros_has_its_gradient():
    x = torch.tensor([[0.0, 3.0, 2.0], [0.0, 0.0, 2.0]], requires_grad=True)
    comprehension("def product(float(N,M) X) -> (C) { C(n) *=! X(n,m) }")(x).sum().backward()
    assert x.grad.tolist() == [[6, 0, 0], [0, 0, 0]]


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
     ("gated", 1), ("max_pool", 1), ("grouped", 1), ("conv2", 1), ("several", 2), ("chain", 2), ("large", 2)],
)  # fmt: skip
def test_statements_share_kernels(name, kernels):
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


# ---- any schedule, any program


@FEW
@given(st.data(), st.integers(1, 40), st.integers(1, 70))
def test_every_schedule_of_a_nest_agrees(data, n, m):
    function = comprehension(
        "def rows(float(N,M) X) -> (Y, Z) { S(n) +=! X(n,m)\n A(n) max=! X(n,m)\n"
        " Y(n,m) = X(n,m) - S(n) / M\n Z(n) = A(n) * 2 }"
    )
    x = torch.randn(m, n).T if data.draw(st.booleans()) else torch.randn(n, m)
    args = (x.to("ocl"),)
    made = function.made(args)
    (ready,) = made.plan.units
    schedule = data.draw(st.sampled_from(sorted(set(schedules.every(ready.unit, True)), key=str)))
    plan = on_ocl.plan(made.program, {"X": args[0]}, chosen={0: schedule})
    known = plan({"X": args[0]})
    close((known["Y"], known["Z"]), (x - x.mean(1, keepdim=True), x.amax(1) * 2), 1e-4)


@st.composite
def programs(draw):
    """A random function of A(N), B(N,M) and C(M), with as many temporaries as there are statements."""
    ranks = {"A": ("n",), "B": ("n", "m"), "C": ("m",)}
    lines = []

    def read(variables):
        name = draw(st.sampled_from(sorted(ranks)))
        kind = {"n": "N", "m": "M"}
        indexes, padded = [], False
        for dim in ranks[name]:
            shift = draw(st.sampled_from(["", "", "", "+1", "-1", "back"]))
            padded |= shift in ("+1", "-1")
            indexes.append(f"{kind[dim]}-1-{dim}" if shift == "back" else dim + shift)
            variables.add(dim)
        text = f"{name}({','.join(indexes)})"
        return f"({text} else {draw(st.sampled_from(['0', '2']))})" if padded else text

    def value(depth, variables):
        kind = (
            draw(st.sampled_from(["read", "read", "+", "-", "*", "?", "tanh", "max", "index", "number"]))
            if depth
            else "read"
        )
        if kind == "read":
            return read(variables)
        if kind == "number":
            return draw(st.sampled_from(["0.5", "3"]))
        if kind == "index":
            return draw(st.sampled_from(sorted(variables))) if variables else "N"
        parts = [value(depth - 1, variables) for _ in range(3)]
        texts = {
            "?": f"({parts[0]} < {parts[1]} ? {parts[2]} : 1)",
            "tanh": f"tanh({parts[0]})",
            "max": f"max({parts[0]}, {parts[1]})",
        }
        return texts.get(kind, f"({parts[0]} {kind} {parts[1]})")

    for i in range(draw(st.integers(1, 4))):
        variables: set[str] = set()
        text = f"{value(2, variables)} * {read(variables)}"
        left = tuple(v for v in ("n", "m") if v in variables and draw(st.booleans()))
        op = "=" if set(left) == variables else draw(st.sampled_from(["+=!", "+=!", "max=!", "min=!"]))
        where = ", ".join(f"{v} in 0:{'N' if v == 'n' else 'M'}" for v in sorted(variables))
        target = f"T{i}({','.join(left)})" if left else f"T{i}"
        lines.append(f"    {target} {op} {text} where {where}")
        if left:
            ranks[f"T{i}"] = left
    results = ", ".join(f"T{i}" for i in sorted(draw(st.sets(st.integers(0, len(lines) - 1), min_size=1))))
    return "def random(float(N) A, float(N,M) B, float(M) C) -> (" + results + ") {\n" + "\n".join(lines) + "\n}"


def agree(text, device, dtype, tolerance, n, m):
    function = comprehension(text)
    generator = np.random.default_rng(n * 100 + m)
    given = {
        "A": generator.standard_normal(n),
        "B": generator.standard_normal((n, m)),
        "C": generator.standard_normal(m),
    }
    expected = interpret(text, **given)
    made = tensors(function(*(torch.from_numpy(x).to(dtype).to(device) for x in given.values())))
    for name, x in zip(function.function.results, made, strict=True):
        scale = max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(
            x.cpu().double().numpy() / scale, expected[name] / scale, atol=tolerance, err_msg=text
        )


@MANY
@given(programs(), st.integers(1, 6), st.integers(1, 6))
def test_random_programs_mean_what_they_say(text, n, m):
    agree(text, "cpu", torch.float64, 1e-9, n, m)
    assert parse(show_function(parse(text))) == parse(text)


@FEW
@given(programs(), st.integers(1, 6), st.integers(1, 40))
def test_random_programs_become_right_kernels(text, n, m):
    agree(text, "ocl", torch.float32, 1e-4, n, m)


# ---- functions


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_has_its_value_and_its_slope(name):
    function = FUNCTIONS[name]
    low, high = {"acosh": (1.2, 3), "lgamma": (0.5, 3), "tgamma": (0.5, 3)}.get(name, (0.11, 0.9))  # none near 0.5
    args = [torch.linspace(low, high, 7, dtype=torch.float64) + 0.01 * i for i in range(function.arity)]
    names = "XYZW"[: function.arity]
    signature = ", ".join(f"float(N) {x}" for x in names)
    text = f"def call({signature}) -> (R) {{ R(i) = {name}({', '.join(f'{x}(i)' for x in names)}) }}"
    made = comprehension(text)
    made(*args)
    if None not in function.slopes and name not in ("nextafter", "logb"):
        assert torch.autograd.gradcheck(made, [x.requires_grad_() for x in args])


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
def test_functions_are_torchs_on_the_device(arity):
    names = [n for n, f in sorted(FUNCTIONS.items()) if f.arity == arity and f.c and n != "nextafter"]
    signature = ", ".join(f"float(N) {x}" for x in "XYZW"[:arity])
    reads = ", ".join(f"{x}(i)" for x in "XYZW"[:arity])
    lines = [f"R{k}(i) = {n}({reads}{' + 1' if n == 'acosh' else ''})" for k, n in enumerate(names)]
    made = comprehension(
        f"def call({signature}) -> ({', '.join(f'R{k}' for k in range(len(names)))}) {{\n" + "\n".join(lines) + "}"
    )
    args = [torch.linspace(0.1, 0.9, 7, dtype=torch.float64) + 0.01 * i for i in range(arity)]
    close(made(*(x.float().to("ocl") for x in args)), made(*args), 1e-4)


# ---- errors

MISTAKES = [
    ("def f(float(N) A) -> (C) { C = A(i) }", (), "i is on the right only"),
    ("def f(float(N) A) -> (C) { B(i) = A(i) }", (), "the result C is never written"),
    ("def f(float(N) A) -> (C) { C(i) += A(i) }", (), "has no value that"),
    ("def f(float(N) A) -> (C) { C(i) = A(i,i) }", (), "A has 1 dimension, and is read with 2"),
    ("def f(float(N) A) -> (C) { C(i) = exq(A(i)) }", (), "no tensor and no function is called exq"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) + C(i-1) }", (), "is read by the statement that writes it"),
    ("def f(float(N) A) -> (C) { A(i) = 1 where i in 0:N }", (), "inputs are never written"),
    ("def f(float(N) A) -> (C) { C(i) = A(i)\n C(i) = A(i) }", (), "C is written already"),
    ("def f(float(N) A) -> (C) { C(i) +=! A(i+k) }", (), "cannot tell the range of i"),
    ("def f(float(N) A) -> (C) { C(i) = A(i-1) else 0 * 2 }", (), "cannot tell the range of i"),
    ("def f(uint32(N) A) -> (C) { C(i) = A(i) }", (), "torch computes nothing in uint32"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) ", (), "is not closed"),
    ("def f(float(N) A) -> (C) { C(i,i) = A(i) }", (), "i stands twice on the left"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) ? }", (), "expected an expression"),
    ("def f(float(N) A, float(N) B) -> (C) { C(i) = A(i)*B(i) }", (3, 4), "its dimension 0 is 4, and N is 3, as for A"),
    ("def f(float(N) A, float(N,M) B) -> (C) { C(i) +=! A(i)*B(i,j) }", (3, 3), "B has 2 dimensions, and was given 1"),
    ("def f(float(N) A) -> (C) { C(i) = A(i+1) where i in 0:N }", (4,), "leaves A: i + 1 is 1 to 4 of 4"),
    ("def f(float(N) A, float(K) B) -> (C) { C(i) +=! A(i+k)*B(k) }", (2, 5), "nothing is left for i"),
    ("def f(int(N) A) -> (C) { C(i) = A(i) }", (3,), "A is int, and was given float32"),
    ("def f(float(N) A, int(N) I) -> (C) { C(I(n)) += A(n) }", (), "I(...) is no index variable"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) ** 2 }", (), "'**' is no operator of the notation"),
    ("def f(float(N) A) -> (C) { C = sum(A(i)) }", (), "no function is called sum"),
    ("def f(float(N) A) -> (float(N) C) { C(i) = A(i) }", (), "results are named without type or sizes"),
    ("def f(float(N) A) -> C { C(i) = A(i) }", (), "results stand in parentheses"),
    ("def f(float(N) A) -> (C) { A(i) = A(i) * 2 }", (), "inputs are never written"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sizes", "said"), MISTAKES)
def test_a_mistake_is_said_in_the_words_of_the_notation(text, sizes, said):
    with pytest.raises(NotationError) as caught:
        comprehension(text)(*(torch.zeros(n) for n in sizes))
    message, line, caret = caught.value.message.splitlines()
    assert said in message
    assert line.strip() in text
    assert caret.strip() == "^"


def test_a_mistake_is_pointed_at():
    with pytest.raises(NotationError) as caught:
        comprehension("\n    def f(float(N) A) -> (C) {\n        C(i) = A(j)\n    }\n")
    assert str(caught.value) == (
        "j is on the right only: that is a reduction, and = is no operator of one\n"
        "  C(i) = A(j)\n"
        "           ^\n"
        " hint: write +=!, *=!, min=! or max=! instead of =, or put j on the left"
    )


# ---- tuning and explaining


def test_tuning_keeps_what_is_faster_for_this_size(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    schedules.known.cache_clear()
    function = comprehension("def sums(float(N,M) X) -> (C) { C(n) +=! X(n,m) }")
    x = torch.randn(300, 200).to("ocl")
    said = function.tune(x, seconds=1, quiet=True)
    assert said.endswith("x  sums_C")
    close(function(x), x.cpu().sum(1), 1e-4)
    schedules.known.cache_clear()
    for schedule in schedules.known().values():
        assert function.made((x,)).plan.units[0].schedule == schedule
    schedules.known.cache_clear()


def test_ctrl_c_ends_a_search_and_keeps_what_was_found(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    schedules.known.cache_clear()
    function = comprehension("def sums(float(N,M) X) -> (C) { C(n) +=! X(n,m) }")
    x = torch.randn(30, 20).to("ocl")
    made = function.made((x,))
    monkeypatch.setattr(on_ocl, "nest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert function.tune(x, seconds=60, quiet=True) == " 1.00 x  sums_C"
    monkeypatch.undo()
    schedules.known.cache_clear()
    assert function.made((x,)) is not made


def test_tuning_wants_the_device():
    with pytest.raises(UserError, match="has no kernels"):
        comprehension("def f(float(N) A) -> (C) { C(i) = A(i) }").tune(torch.zeros(3))


def test_explain_says_which_statements_are_which_kernel():
    function = comprehension(ATTEND)
    q = torch.randn(1, 2, 16, 8).to("ocl")
    text = function.explain(q, q, q)
    assert "attend_M_E_Z: 32 points, 16 elements each" in text
    assert "[b 0:1, h 0:2, t 0:16, s 0:16, d 0:8]" in text
    assert "of what memory allows" in text
    assert "__kernel" in function.source(q, q, q)
    assert "by torch" in function.explain(q.cpu(), q.cpu(), q.cpu())


def test_the_example_has_the_sizes_it_is_told():
    function = comprehension(ATTEND, sizes={"H": 2, "T": 8, "D": 4})
    assert [list(x.shape) for x in function.example("cpu", 3)] == [[3, 2, 8, 4], [3, 2, 64, 4], [3, 2, 64, 64]]
    assert SimpleNamespace(x=function(*function.example("cpu", 1))).x.shape == (1, 2, 8, 64)
