"""Convolutions of copies with channels innermost: the same sums, whatever the windows, by tiles brought in whole vectors."""

import itertools
import math

import pytest
import torch
from effort import in_turns

from syncscope.kernels import channels_last, queue
from syncscope.kernels.generate import convolutions, gpu, operands, space
from syncscope.kernels.generate.block import Schedule
from syncscope.kernels.generate.convolutions import Geometry
from syncscope.kernels.generate.ir import simplified
from syncscope.kernels.tuning import search

pytestmark = pytest.mark.usefixtures("gpu_shape", "cores")

# shape of the images, channels made, taps, stride, padding, dilation, groups
WINDOWS = {
    "padded": ((2, 16, 9, 7), 24, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "strided": ((1, 8, 11, 10), 16, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    "one tap": ((2, 8, 7, 7), 40, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "uneven": ((1, 8, 12, 9), 8, (2, 3), (1, 2), (0, 2), (2, 1), 1),
    "grouped": ((1, 32, 6, 5), 16, (3, 3), (1, 1), (1, 1), (1, 1), 2),
    "lines": ((2, 8, 21), 8, (5,), (2,), (2,), (1,), 1),
}


def geometry(shape, made, taps, stride, padding, dilation, groups):
    out = (
        (x + 2 * p - e * (k - 1) - 1) // s + 1
        for x, k, s, p, e in zip(shape[2:], taps, stride, padding, dilation, strict=True)
    )
    return Geometry(shape, (made, shape[1] // groups, *taps), (shape[0], made, *out), stride, padding, dilation, groups)


def launched(work):
    """Names of the kernels that it enqueues."""
    names = []

    def recorder(enqueue, *given):
        names.append(given[0].function_name if enqueue is queue.launch else enqueue.__name__)

    queue.recorders.append(recorder)
    try:
        work()
    finally:
        queue.recorders.remove(recorder)
    return names


def each_window():
    """One tap in halves and in TF32, whose copies differ; the other windows in one of them, in turns."""
    for number, name in enumerate(WINDOWS):
        for dtype in (torch.float16, torch.float32, torch.bfloat16):
            turn = name == "one tap" or dtype is (torch.float32, torch.float16)[number % 2]
            seldom = dtype is torch.bfloat16 or not turn
            yield pytest.param(name, dtype, marks=pytest.mark.slow if seldom else ())


@pytest.mark.parametrize(("name", "dtype"), [*each_window()])
def test_windows_of_many_channels_are_convolved_from_copies(name, dtype):
    g = geometry(*WINDOWS[name])
    torch.manual_seed(0)
    given = [torch.randn(x).to(dtype) for x in (g.image, g.weight, (g.made[1],))]
    slope = torch.randn(g.made).to(dtype)
    way = {"stride": g.stride, "padding": g.padding, "dilation": g.dilation, "groups": g.groups}
    convolve = torch.conv1d if len(g.image) == 3 else torch.conv2d
    exact = [x.double().requires_grad_() for x in given]
    convolve(*exact, **way).backward(slope.double())
    here = [x.to("ocl").requires_grad_() for x in given]
    made = []

    def train():
        made.append(convolve(*here, **way))
        made[0].backward(slope.to("ocl"))

    names = launched(train)
    copies = sum("channels_last" in name for name in names)
    one = math.prod(g.weight[2:]) == 1  # then weights are read as they lie, and in TF32 images, too
    assert copies == ((0 if dtype is torch.float32 else 3) if one else 5)  # images twice, slopes once, weights twice
    expected = [convolve(*exact, **way), *(x.grad for x in exact)]
    bound = 8 * torch.finfo(dtype).eps if dtype is not torch.float32 else 2e-3
    for a, b in zip(expected, (made[0], *(x.grad for x in here)), strict=True):
        assert (a - b.cpu().double()).abs().max() < bound * a.abs().max()


def last(g):
    return [
        convolutions.forward(g, "forward", False, last=True),
        convolutions.backward_weight(g, "backward_weight", last=True),
        *(c for c in convolutions.backward_input(g, "backward_input", False, last=True) if c.size("k")),
    ]


TILES = [
    Schedule(32, 32, 8, 4, 4, cores=True, stages=3),
    Schedule(64, 32, 16, 4, 8, split=2, cores=True, stages=3),
]


@pytest.mark.parametrize(
    ("which", "made"), in_turns(range(3), [*itertools.product(TILES, [torch.float32, torch.float16])])
)
def test_tiles_of_them_are_multiplied_as_they_were_copied(which, made):
    tile, dtype = made
    g = geometry((2, 24, 7, 6), 40, (3, 3), (1, 1), (1, 1), (1, 1), 1)  # with padding, and ends of tiles
    c = simplified(channels_last.rounded(last(g)[which]))
    if dtype is torch.float16:
        tile = Schedule(tile.bm, tile.bn, 2 * tile.bk, tile.tm, tile.tn, split=tile.split, cores=True, stages=3)
    assert space.legal(c, tile, search.ALIGNED, dtype)
    assert gpu.packed(c) is None
    bench = search.Bench(c, dtype, tf32=dtype is torch.float32)
    if dtype is torch.float32:
        assert operands.copied_as(c, tile, search.ALIGNED) == "rounded"
        bench.a, bench.b = (channels_last._copy(x, 1, 1).view(-1) for x in (bench.a, bench.b))
    bench.host = [x.cpu().double().numpy() for x in (bench.a, bench.b)]
    assert bench.error(tile) < (1e-6 if dtype is torch.float32 else 2 * torch.finfo(dtype).eps)


def test_copies_hold_eleven_bits_of_floats_and_all_of_halves():
    x = torch.randn(3, 70, 9, 8)
    x[0, 0, 0, :3] = torch.tensor([math.inf, -math.inf, math.nan])
    for dtype in (torch.float32, torch.float16):
        for given in (x.to(dtype), x[:, :, :2, :2].to(dtype).contiguous()):
            made = channels_last.Copies().of(given.to("ocl")).cpu().transpose(1, 2).reshape(given.shape)
            if dtype is torch.float32:
                assert not (made.isfinite() * made.contiguous().view(torch.int32) & 0x1FFF).any()
                torch.testing.assert_close(made, given, rtol=2**-11, atol=0, equal_nan=True)
            else:
                torch.testing.assert_close(made, given, rtol=0, atol=0, equal_nan=True)


def test_what_is_read_in_whole_vectors_as_it_lies_is_not_copied():
    image, weight = torch.randn(2, 16, 8, 8).half().to("ocl"), torch.randn(8, 16, 1, 1).half().to("ocl")
    assert not any("channels_last" in name for name in launched(lambda: torch.conv2d(image, weight)))
    three = torch.randn(2, 3, 8, 8).half().to("ocl"), torch.randn(8, 3, 3, 3).half().to("ocl")
    assert not any("channels_last" in name for name in launched(lambda: torch.conv2d(*three, padding=1)))


def test_they_are_what_the_tuner_looks_at(monkeypatch):
    monkeypatch.setattr(search.tensor_cores, "serve", lambda dtype: True)
    of = {said: c for said, c, *_ in search.kinds()}
    assert of["convolution 64 -> 64, 3 x 3, 56 px, to weight, in TF32"].b.rounded
    assert not of["convolution 64 -> 64, 1 x 1, 56 px, in TF32"].b.rounded
    halves = simplified(of["convolution 512 -> 512, 3 x 3, 7 px, to input, in half precision"])
    assert operands.eights(halves, search.ALIGNED)
    assert not operands.eights(simplified(of["convolution 3 -> 64, 3 x 3, 224 px, in half precision"]), search.ALIGNED)


def test_the_tuner_looks_at_each_class_of_pixels_that_a_stride_makes(monkeypatch):
    monkeypatch.setattr(search.tensor_cores, "serve", lambda dtype: True)
    strided = "convolution 64 -> 128, 3 x 3 by 2, 56 px, to input"
    for how in ("", ", in TF32", ", in half precision"):
        assert len({c for said, c, *_ in search.kinds() if said == strided + how}) == 4
