"""Views on the device are those of the CPU: shapes, strides, errors, and what depends on a view being one."""

import sys

import pytest
import torch
from effort import draws
from hypothesis import given, settings
from hypothesis import strategies as st

from syncscope.kernels import in_c, memory

SIZES = st.lists(st.integers(-2, 6), max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("view"), SIZES),
    st.tuples(st.just("as_strided"), SIZES, SIZES),
    st.tuples(st.just("as_strided"), SIZES, SIZES, st.integers(-1, 30)),
    st.tuples(st.just("reshape"), SIZES),
    st.tuples(st.just("transpose"), st.integers(-2, 2), st.integers(-2, 2)),
    st.tuples(st.just("select"), st.integers(-1, 2), st.integers(-2, 3)),
    st.tuples(st.just("expand"), SIZES),
    st.tuples(st.just("flatten"), st.integers(-2, 2), st.integers(-2, 2)),
    st.tuples(st.just("unflatten"), st.integers(-2, 2), SIZES.filter(bool)),
    st.tuples(st.just("view_as_real")),
    st.tuples(st.just("conj")),
)


def done(x, name, *arguments):
    """The view, or what the error says."""
    try:
        return torch.view_as_real(x) if name == "view_as_real" else getattr(x, name)(*arguments)
    except (RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def layout(x):
    return x.dtype, x.shape, x.stride(), x.storage_offset(), x.is_conj(), x._is_view(), x._version


@settings(max_examples=draws(150))
@given(st.sampled_from([(24,), (2, 3, 4), (4, 1, 6), (0, 3), ()]), st.lists(STEPS, max_size=5))
def test_views_and_their_errors_are_those_of_the_cpu(shape, steps):
    on_cpu = torch.zeros(shape, dtype=torch.complex64)
    here = torch.empty(shape, dtype=torch.complex64, device="ocl")
    first = here.untyped_storage().data_ptr()
    for name, *arguments in steps:
        if name == "reshape" and isinstance(done(on_cpu, "view", *arguments), str):
            continue  # it would copy
        expected, got = done(on_cpu, name, *arguments), done(here, name, *arguments)
        if isinstance(expected, str):
            assert got == expected.replace("CPUComplex", "oclComplex")
            break
        assert layout(got) == layout(expected)
        assert got.untyped_storage().data_ptr() == first
        on_cpu, here = expected, got


def test_a_view_in_which_an_error_was_raised_is_not_held():
    x = torch.empty(1000, device="ocl")
    before = memory.in_use
    for shape in ([7], [-1, 3], [-1, -1]):
        with pytest.raises(RuntimeError):
            torch.empty(4000, device="ocl").view(shape)
    with pytest.raises(RuntimeError, match=r"setStorage: .* out of bounds for storage of size 4000"):
        x.as_strided((2, 1000), (1, 1), 0)
    assert memory.in_use == before


def test_a_view_in_inference_mode_is_a_tensor_of_the_kind_of_its_base():
    base = torch.ones(6, device="ocl")
    with torch.inference_mode():
        made = torch.ones(6, device="ocl")
        assert not base.view(2, 3).t().is_inference()
    assert made.view(2, 3).t().is_inference()


@pytest.mark.parametrize("device", ["cpu", "ocl"])
def test_what_is_written_to_a_view_is_in_its_base_and_in_the_gradients(device):
    x = torch.arange(6.0, device=device).requires_grad_()
    y = x * 2
    y.view(2, 3).t()[1].mul_(5)
    y.as_strided((2,), (3,), 2).zero_()
    y.sum().backward()
    assert y.tolist() == [0, 10, 0, 6, 40, 0]
    assert x.grad.tolist() == [2, 10, 0, 2, 10, 0]
    assert y._version == 2
    saved = x * 3
    kept = saved.exp()
    kept.view(6).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_views_within_transforms_and_compiled_code():
    rows = torch.arange(24.0).view(2, 12)

    def turned(row):
        return row.view(3, 4).t().reshape(12).as_strided((5,), (2,), 1) * 2

    expected = torch.func.vmap(turned)(rows)
    assert torch.equal(torch.func.vmap(turned)(rows.to("ocl")).cpu(), expected)
    compiled = torch.compile(turned, backend="eager", fullgraph=True)
    assert torch.equal(compiled(rows[1].to("ocl")).cpu(), expected[1])
    tangent = torch.func.jvp(turned, (rows[0].to("ocl"),), (rows[1].to("ocl"),))[1]
    assert torch.equal(tangent.cpu(), expected[1])


@pytest.mark.skipif(in_c.module is None, reason="no compiler")
def test_a_view_calls_no_python():
    x = torch.zeros(4, 6, device="ocl")
    called = []
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        x.view(24).view(6, 4).t().as_strided((2,), (1,))
    finally:
        sys.setprofile(None)
    assert not called
    assert "views.c" in torch._C._dispatch_dump("aten::view")
