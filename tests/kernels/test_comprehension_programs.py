"""Random comprehensions mean what their notation says, under any schedule; every function is torch's, and has its slope."""

import numpy as np
import pytest
import torch
from comprehension_cases import close, tensors
from comprehension_interpreter import interpret
from effort import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncscope.kernels import comprehension
from syncscope.kernels.comprehensions import on_ocl, schedules
from syncscope.kernels.comprehensions.functions import FUNCTIONS
from syncscope.kernels.comprehensions.notation import parse
from syncscope.kernels.comprehensions.statements import show_function

# Each kernel that is met takes PoCL a tenth of a second.
FEW = settings(max_examples=draws(4), suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=draws(40), suppress_health_check=list(HealthCheck))


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

    count = draw(st.integers(1, 4))
    for i in range(count):
        variables: set[str] = set()
        text = f"{value(2, variables)} * {read(variables)}"
        left = tuple(v for v in ("n", "m") if v in variables and draw(st.booleans()))
        op = "=" if set(left) == variables else draw(st.sampled_from(["+=!", "+=!", "max=!", "min=!"]))
        where = ", ".join(f"{v} in 0:{'N' if v == 'n' else 'M'}" for v in sorted(variables))
        target = f"T{i}({','.join(left)})" if left else f"T{i}"
        lines.append(f"    {target} {op} {text} where {where}")
        if left and draw(st.booleans()):  # and on with the same, perhaps in part
            variables = set(left)
            text = f"({value(1, variables)} + {' + '.join(left)})"
            begins = {
                v: draw(st.sampled_from(["0", f"{v.upper()}-1"])) if v in left else "0" for v in sorted(variables)
            }
            where = ", ".join(f"{v} in {begin}:{v.upper()}" for v, begin in begins.items())
            op = draw(st.sampled_from(["+=", "*=", "max="] + [f"= {target} *"] * (variables == set(left))))
            lines.append(f"    {target} {op} {text} where {where}")
        if left:
            ranks[f"T{i}"] = left
    results = ", ".join(f"T{i}" for i in sorted(draw(st.sets(st.integers(0, count - 1), min_size=1))))
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


@FEW
@given(programs(), st.integers(1, 4), st.integers(1, 4))
def test_random_programs_have_right_gradients(text, n, m):
    function, generator = comprehension(text), torch.Generator().manual_seed(n * 10 + m)
    shapes = (n,), (n, m), (m,)
    given = [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]

    def flowing(*args):
        return tuple(x for x in tensors(function(*args)) if x.requires_grad)

    if flowing(*given):
        assert torch.autograd.gradcheck(flowing, given, atol=1e-4)


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
