"""Contractions: every shape of kernel, schedule and geometry gives the sum of products, as double precision has it."""

import json
import math

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from effort import draws, in_turns
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from syncscope.cli.tune import command
from syncscope.kernels import channels_last, winograd
from syncscope.kernels.device import is_gpu
from syncscope.kernels.generate import convolutions, cpu, gpu, run, space, tensor_cores
from syncscope.kernels.generate.block import Schedule
from syncscope.kernels.generate.convolutions import Geometry
from syncscope.kernels.generate.ir import Access, Contraction, Index, simplified
from syncscope.kernels.tuning import search, store
from syncscope.kernels.tuning.problems import Problem, problems, product

pytestmark = pytest.mark.usefixtures("gpu_shape")

ON_A_CPU = pytest.mark.skipif(
    is_gpu, reason="a GPU's compiler has no vectors at any address, as the CPU's kernels need"
)
FEW = settings(max_examples=draws(3), suppress_health_check=list(HealthCheck))
sizes = st.integers(1, 40)


@st.composite
def geometries(draw):
    """A small convolution of one or two dimensions."""
    rank, groups = draw(st.integers(1, 2)), draw(st.sampled_from([1, 1, 2]))
    n, read, made = draw(st.integers(1, 2)), groups * draw(st.sampled_from([1, 3, 8])), groups * draw(st.integers(1, 9))

    def each(least, most):
        return tuple(draw(st.integers(least, most)) for _ in range(rank))

    taps, stride, padding, dilation = each(1, 3), each(1, 3), each(0, 2), each(1, 2)
    side = tuple(e * (k - 1) + 1 + draw(st.integers(0, 7)) for k, e in zip(taps, dilation, strict=True))
    out = tuple(
        (x + 2 * p - e * (k - 1) - 1) // s + 1
        for x, p, e, k, s in zip(side, padding, dilation, taps, stride, strict=True)
    )
    shapes = (n, read, *side), (made, read // groups, *taps), (n, made, *out)
    return Geometry(*shapes, stride, padding, dilation, groups)


def passes(g):
    return [
        convolutions.forward(g, "forward", False),
        convolutions.backward_weight(g, "backward_weight"),
        *(c for c in convolutions.backward_input(g, "backward_input", False) if c.size("k")),
    ]


@FEW
@given(sizes, sizes, sizes, st.booleans(), st.booleans(), st.data())
def test_any_legal_schedule_multiplies(m, n, k, left, right, data):
    c = product(m, n, k, (1, m) if left else (k, 1), (1, k) if right else (n, 1))
    schedules = [s for s in space.every(simplified(c), search.ALIGNED, torch.float32) if s.bm + s.bn <= 128]
    assert search.Bench(c).error(data.draw(st.sampled_from(schedules))) < 1e-5


@pytest.mark.parametrize(
    ("sizes", "left", "dtype"),
    in_turns(
        [(64, 32, 48, 1), (130, 36, 100, 4), (130, 36, 41, 1)],
        [False, True],
        [torch.float16, torch.bfloat16, torch.float32],
    ),
)
def test_tensor_cores_multiply(sizes, left, dtype, cores):
    m, n, k, split = sizes
    right = left == (m == 64)
    bench = search.Bench(product(m, n, k, (1, m) if left else (k, 1), (1, k) if right else (n, 1)), dtype)
    bench.host = [x.cpu().double().numpy() for x in (bench.a, bench.b)]
    tile = (
        (64, 32, 16, 8, 4) if dtype.itemsize == 2 else (32, 32, 16, 4, 4)
    )  # floats take three products: long to compile
    schedule = Schedule(*tile, split=split, cores=True)
    assert bench.error(schedule) < 2 * torch.finfo(dtype).eps
    once = bench.out.cpu()
    for _ in range(3):  # groups and parts side by side share nothing
        bench.out.fill_(math.nan)
        run.plan(bench.c, dtype, search.ALIGNED, schedule)(bench.a, bench.b, None, bench.out)
        assert torch.equal(bench.out.cpu(), once)


@pytest.mark.parametrize(("split", "stages"), [(1, 2), pytest.param(4, 2, marks=pytest.mark.slow), (4, 3)])
def test_tf32_multiplies_once_by_eleven_bits(split, stages, cores):
    m, n, k = 66, 36, 100
    c, schedule = product(m, n, k, (k, 1), (n, 1)), Schedule(32, 32, 16, 4, 4, split=split, cores=True, stages=stages)
    bench = search.Bench(c, tf32=True)
    exact = bench.error(schedule)
    rounded = [((x.view(np.uint32) + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32) for x in bench.host]
    bench.host = rounded  # what the device made is nearer to the product of these
    assert 1e-5 < exact < 1e-3
    assert bench.error(schedule) < 1e-6


def test_settings_of_pytorch_say_what_is_multiplied_once(cores, monkeypatch, request):
    x, w = torch.randn(2, 8, 9, 9), torch.randn(8, 8, 3, 3)
    a, b = torch.randn(40, 64), torch.randn(64, 24)
    there = [t.to("ocl") for t in (x, w, a, b)]

    def off():
        """Errors of a convolution and of a product, of the third call alike: with plans that were kept."""
        made = [(torch.conv2d(*there[:2]), torch.mm(*there[2:])) for _ in range(3)][2]
        exact = torch.conv2d(x.double(), w.double()), torch.mm(a.double(), b.double())
        return [float((y.cpu() - z).abs().max() / z.abs().max()) > 1e-5 for y, z in zip(made, exact, strict=True)]

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    told = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(told, "__allow_nonbracketed_mutation_flag", True)  # torch's own samples forbid to set them
    monkeypatch.setattr(cudnn, "allow_tf32", cudnn.allow_tf32)  # as they are, afterwards
    monkeypatch.setattr(matmul, "allow_tf32", matmul.allow_tf32)
    request.addfinalizer(lambda: torch.set_float32_matmul_precision("highest"))
    assert off() == [True, False]  # as PyTorch comes
    cudnn.allow_tf32 = False
    assert off() == [False, False]
    torch.set_float32_matmul_precision("high")
    assert off() == [False, True]
    monkeypatch.setattr(torch.ocl, "allow_tf32", True)
    assert off() == [True, True]
    monkeypatch.setattr(torch.ocl, "allow_tf32", False)
    assert off() == [False, False]
    monkeypatch.setattr(torch.ocl, "allow_tf32", None)
    matmul.allow_tf32, cudnn.allow_tf32 = False, True
    assert off() == [True, False]


@pytest.mark.parametrize("by_cores", [True, False])
def test_the_least_blocks_multiply_beside_tensor_cores(by_cores, cores):
    c = product(20, 18, 9, (9, 1), (18, 1))
    legal = [s for s in space.every(simplified(c), search.ALIGNED, torch.float32) if s.cores == by_cores]
    assert search.Bench(c).error(min(legal, key=lambda s: (s.tm * s.tn, s.bm * s.bn, s.bk))) < 1e-5


@FEW
@given(geometries(), st.sampled_from([torch.float16, torch.bfloat16, torch.float32]), st.data())
def test_tensor_cores_convolve(cores, g, dtype, data):
    c = data.draw(st.sampled_from(passes(g)))
    seen = gpu.packed(simplified(c)) or simplified(c)
    schedules = [
        s
        for s in space.every(seen, search.ALIGNED, dtype)
        if s.bm + s.bn <= 96 and s.cores and s.tm * s.tn <= (64 if dtype.itemsize == 2 else 8)
    ]
    assume(schedules)
    bench = search.Bench(c, dtype)
    bench.host = [x.cpu().double().numpy() for x in (bench.a, bench.b)]
    assert bench.error(data.draw(st.sampled_from(schedules))) < 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize(
    ("stored", "kind"), [("half", "halves"), ("bfloat16", "halves"), ("plain", "thrice"), ("plain", "once")]
)
def test_tensor_cores_are_used_where_they_multiply_rightly(stored, kind, cores, monkeypatch):
    right, text = tensor_cores._right.__wrapped__, tensor_cores.text(kind)
    text = f"#define S {'float' if stored == 'plain' else 'ushort'}\n{text}"
    monkeypatch.setattr(tensor_cores, "text", lambda kind: text)
    assert right(stored, kind)
    swapped = text.replace("(lo, hi, a0, a1, a2, a3, b0, b1) ", "(lo, hi, a1, a0, a2, a3, b0, b1) ")
    assert swapped != text
    monkeypatch.setattr(tensor_cores, "text", lambda kind: swapped)
    assert not right(stored, kind)


@pytest.mark.parametrize("split", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_tensor_cores_multiply_what_is_not_finite_as_float32_does(split, cores):
    a, b = torch.randn(40, 33), torch.randn(33, 24)
    a[3, 4], a[5, 6], a[7, 8], a[9, 10], b[11, 12] = math.inf, -math.inf, math.nan, torch.finfo().max, math.inf
    b[4, 2], b[6, 3], b[11, 13], b[10] = 1.0, 0.0, math.nan, 1e-10
    out, there = torch.empty(40, 24, device="ocl"), (a.to("ocl"), b.to("ocl"))
    c = product(40, 24, 33, (33, 1), (24, 1))
    run.plan(c, torch.float32, search.ALIGNED, Schedule(32, 32, 16, 4, 4, split=split, cores=True))(*there, None, out)
    torch.testing.assert_close(out.cpu(), a @ b, equal_nan=True)


@pytest.mark.parametrize(
    "which",
    [0, 1, pytest.param(2, marks=pytest.mark.slow)],  # the last reads as the first does
    ids=["forward", "backward_weight", "backward_input"],
)
def test_tiles_are_copied_while_others_are_multiplied(which, cores):
    g = Geometry((2, 8, 5, 6), (9, 8, 3, 3), (2, 9, 5, 6), (1, 1), (1, 1), (1, 1), 1)  # with padding, and ends of tiles
    bench = search.Bench(passes(g)[which])
    assert bench.error(Schedule(32, 32, 8, 4, 4, cores=True, stages=4)) < 1e-6


@pytest.mark.parametrize(
    ("left", "right", "dtype"), in_turns([False, True], [False, True], [torch.float16, torch.bfloat16])
)
@pytest.mark.parametrize("tile", [(64, 32, 32, 4, 8), pytest.param((32, 64, 16, 2, 4), marks=pytest.mark.slow)])
def test_tiles_of_halves_are_copied_and_read_as_matrices(tile, left, right, dtype, cores):
    m, n, k = 72, 40, 104  # ends of tiles
    bench = search.Bench(product(m, n, k, (1, m) if left else (k, 1), (1, k) if right else (n, 1)), dtype)
    bench.host = [x.cpu().double().numpy() for x in (bench.a, bench.b)]
    for split in (1, 2):
        schedule = Schedule(*tile, split=split, cores=True, stages=3)
        assert space.legal(simplified(bench.c), schedule, search.ALIGNED, dtype)
        assert bench.error(schedule) < 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize("tf32", [False, True])
def test_convolutions_in_tf32_copy_their_tiles_where_nobody_tuned(tf32, cores):
    shape = (64, 256, 28, 28)
    g = Geometry(shape, (256, 256, 3, 3), shape, (1, 1), (1, 1), (1, 1), 1)
    chosen = [
        space.default(gpu.packed(simplified(c)) or simplified(c), 132, search.ALIGNED, torch.float32, tf32)
        for c in passes(g)
    ]
    assert [s.copied for s in chosen] == [tf32, False, tf32]  # not to the weights


@FEW
@given(geometries(), st.data())
def test_any_legal_schedule_convolves(g, data):
    c = data.draw(st.sampled_from(passes(g)))
    seen = gpu.packed(simplified(c)) or simplified(c)
    schedules = [s for s in space.every(seen, search.ALIGNED, torch.float32) if s.bm + s.bn <= 96]
    assert search.Bench(c).error(data.draw(st.sampled_from(schedules))) < 1e-5


@ON_A_CPU
@FEW
@given(geometries(), st.integers(1, 12), st.sampled_from([8, 16]), st.booleans(), st.data())
def test_any_rows_and_columns_convolve_on_a_cpu(g, rows, columns, pack_a, data):
    c = simplified(data.draw(st.sampled_from(passes(g))))
    if data.draw(st.booleans()):
        c = cpu.swapped(c)
    assume(pack_a or not c.a.inside)
    run.SHAPE = "cpu"
    try:
        assert search.Bench(c).error(cpu.Schedule(rows, columns, pack_a, True)) < 1e-5
    finally:
        run.SHAPE = "gpu"


@ON_A_CPU
@pytest.mark.parametrize("turn", [lambda c: c, cpu.swapped], ids=["as it is", "turned"])
@pytest.mark.parametrize("which", range(3), ids=["forward", "backward_weight", "backward_input"])
def test_one_pixel_amid_padding_convolves_on_a_cpu(which, turn, monkeypatch):
    monkeypatch.setattr(run, "SHAPE", "cpu")  # an axis without loops, and bounds all the same
    g = Geometry((1, 1, 1), (1, 1, 1), (1, 1, 3), (1,), (1,), (1,), 1)
    c = turn(simplified(passes(g)[which]))
    assert search.Bench(c).error(cpu.Schedule(4, 8, True, True)) < 1e-5


@pytest.mark.parametrize("made", [8, 20])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_are_walked_channel_by_channel_where_that_is_cheaper(made, stride):
    side = (16 + 2 - 3) // stride + 1
    g = Geometry((2, 16, 16, 16), (made, 16, 3, 3), (2, made, side, side), (stride,) * 2, (1, 1), (1, 1), 1)
    c = simplified(convolutions.forward(g, "forward", False))
    copied = gpu.packed(c)
    assert copied is not None
    assert copied.k[-1] == 16
    assert search.Bench(c).error(space.default(copied, 132, search.ALIGNED, torch.float32)) < 1e-5


def test_loops_are_joined_where_memory_allows_it():
    # a pointwise convolution of two images of 3 x 5 pixels is a product for each image
    g = Geometry((2, 4, 3, 5), (6, 4, 1, 1), (2, 6, 3, 5), (1, 1), (0, 0), (1, 1), 1)
    c = simplified(convolutions.forward(g, "forward", False))
    assert (c.z, c.m, c.n, c.k) == ((), (6,), (2, 15), (4,))
    assert not c.b.inside


def test_a_stride_gathers_each_pixel_from_the_taps_that_saw_it():
    g = Geometry((1, 1, 4), (1, 1, 3), (1, 1, 2), (2,), (1,), (1,), 1)
    even, odd = convolutions.backward_input(g, "backward_input", False)
    assert (even.k, odd.k) == ((1, 1), (1, 2))  # even pixels were seen by the middle tap, odd ones by both others


def test_a_depthless_sum_is_zero():
    c = Contraction(
        "nothing",
        (),
        (3,),
        (5,),
        (0,),
        Access(Index(m=(1,), k=(1,))),
        Access(Index(n=(1,), k=(1,))),
        Index(m=(5,), n=(1,)),
    )
    out = torch.full((15,), 7.0, device="ocl")
    run.plan(c, torch.float32, search.ALIGNED)(out, out, None, out)
    assert out.eq(0).all()


def test_a_wrong_kernel_is_not_believed(monkeypatch):
    bench = search.Bench(product(8, 8, 8, (8, 1), (8, 1)))
    schedule = space.default(bench.c, 2, search.ALIGNED, torch.float32)
    assert bench.error(schedule) < 1e-5
    bench.host[0] = np.roll(bench.host[0], 1)  # as if the device had read the wrong elements
    assert bench.error(schedule) > 1e-3


def test_tuning_is_kept_and_used(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(search, "problems", lambda: [Problem("product 24", product(24, 24, 24, (24, 1), (24, 1)))])
    store.known.cache_clear()
    try:
        done = CliRunner().invoke(
            command, ["--seconds", "3", "--each", "1", "--only", "product"], standalone_mode=False
        )
        assert done.return_value == 0, done.output
        rows = list(map(json.loads, store.own().read_text().splitlines()))
        assert 1 <= len(rows) <= len(list(search.kinds()))  # in halves, too, where tensor cores serve and there is time
        for row in rows:
            assert store.known()[row["problem"]] == Schedule(**row["schedule"])
        assert "product 24" in done.output
    finally:
        store.known.cache_clear()


def test_a_damaged_line_costs_one_class_its_schedule(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path))
    store.known.cache_clear()
    shipped = set(store.known())  # with us, for this device
    path = store.keep([("one", Schedule(32, 32, 16, 4, 4), {})])
    path.write_text("{half a li\n" + path.read_text())
    assert set(store.known()) - shipped == {"one"}
    store.known.cache_clear()


def test_what_ships_is_legal_somewhere(cores):
    keys = {}
    for one in problems():
        copies = [] if one.channels_last is None else [channels_last.rounded(one.channels_last)]
        for c in map(simplified, (one.c, *copies)):
            c = gpu.packed(c) or c
            for tf32 in (False, True):
                keys.setdefault(space.problem(c, search.ALIGNED, torch.float32, tf32), []).append(c)
    for path in store.SHIPPED.glob("*.jsonl"):
        for problem, schedule in store.read(path, gpu.Schedule):
            assert any(space.legal(c, schedule, search.ALIGNED, torch.float32) for c in keys[problem]), problem


WINDOWS = [((2, 3, 7, 9), 5, (1, 1)), ((2, 4, 5, 5), 4, (2, 2)), ((3, 16, 14, 13), 8, (1, 0))]


@pytest.mark.usefixtures("exactly")  # TF32's are made directly
@pytest.mark.parametrize(("shape", "made", "padding"), WINDOWS)
def test_winograds_way_convolves(shape, made, padding, monkeypatch):
    monkeypatch.setattr(winograd.store, "numbers", lambda: {f"winograd {which}": 1 for which in winograd.PASSES})
    torch.manual_seed(0)
    x, weight, bias = torch.randn(shape), torch.randn(made, shape[1], 3, 3), torch.randn(made)
    wide = [t.double().requires_grad_() for t in (x, weight, bias)]
    here = [t.to("ocl").requires_grad_() for t in (x, weight, bias)]
    expected, got = (torch.conv2d(*tensors, padding=padding) for tensors in (wide, here))
    slope = torch.randn(expected.shape)
    expected.backward(slope.double()), got.backward(slope.to("ocl"))
    for a, b in zip((expected, *(t.grad for t in wide)), (got, *(t.grad for t in here)), strict=True):
        assert (a - b.cpu().double()).abs().max() < 2e-6 * a.abs().max()


def test_winograds_way_is_taken_only_where_it_was_found_to_pay(monkeypatch):
    g = Geometry((2, 64, 8, 8), (64, 64, 3, 3), (2, 64, 8, 8), (1, 1), (1, 1), (1, 1), 1)
    monkeypatch.setattr(winograd.store, "numbers", dict)
    assert not winograd.pays("conv_forward", g, torch.float32)
    monkeypatch.setattr(winograd.store, "numbers", lambda: {"winograd conv_forward": 64.0})
    assert winograd.pays("conv_forward", g, torch.float32)
    assert not winograd.pays("conv_backward_input", g, torch.float32)
    monkeypatch.setattr(winograd.memory, "ROOM", 1 << 19)
    assert not winograd.pays("conv_forward", g, torch.float32)


@pytest.mark.parametrize("depth", [700, 2048])
def test_long_sums_lose_little_by_rounding(depth):
    torch.manual_seed(0)
    a, b = torch.randn(20, depth), torch.randn(depth, 24)
    exact = a.double() @ b.double()
    lost = [(x.cpu().double() - exact).norm() / exact.norm() for x in (a @ b, a.to("ocl") @ b.to("ocl"))]
    assert lost[1] < (5 if run.SHAPE == "gpu" else 2) * lost[0]
