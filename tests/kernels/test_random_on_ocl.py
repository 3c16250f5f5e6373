"""Random numbers of the device: those of CUDA, the same whatever repeats them, and random."""

import copy
import json
import math
import pickle
from pathlib import Path

import cuda_random
import numpy as np
import pytest
import torch
from effort import in_turns
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from syncscope.kernels import generator, plans, queue, streams
from syncscope.kernels.device import is_gpu

ROUNDS = 10


def philox(seed, stream, count):
    """Four words, in numpy and for arrays of streams: a second way to what `cl/philox.cl` computes."""
    a, b, c, d = (np.asarray(x, np.uint64) for x in np.broadcast_arrays(count & 0xFFFFFFFF, count >> 32, stream, 0))
    low = np.uint64(0xFFFFFFFF)
    first, second = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(ROUNDS):
        of_a, of_c = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (of_c >> np.uint64(32)) ^ b ^ first, of_c & low, (of_a >> np.uint64(32)) ^ d ^ second, of_a & low
        first, second = (first + np.uint64(0x9E3779B9)) & low, (second + np.uint64(0xBB67AE85)) & low
    return np.stack([a, b, c, d]).astype(np.uint32)


def drawn(make, seed=3):
    torch.ocl.manual_seed(seed)
    return make().cpu()


def test_the_words_are_those_of_the_paper():
    # Known answers that come with Random123, of a counter and a key of zeros; two words are a number of 64 bits.
    words = drawn(lambda: torch.empty(1, dtype=torch.int64, device="ocl").random_(-(1 << 63), None), seed=0)
    assert words.item() & (2**64 - 1) == 0x6627E8D5_E169C58D
    assert [int(x) for x in philox(0, 0, 0)] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("size", [1, 5, 256, 1000, 280_000, 1_200_001])
def test_elements_are_dealt_out_as_cuda_deals_them(size, monkeypatch):
    monkeypatch.setattr(streams, "most", lambda: 132 * 2048)
    torch.ocl.manual_seed(7)
    torch.rand(3, device="ocl")  # the first four numbers of the streams
    got = torch.rand(size, device="ocl").cpu().numpy()
    count = min(-(-size // 256) * 256, 132 * 2048)
    turns = -(-size // (4 * count))
    rows = [philox(7, np.arange(count), 1 + turn) for turn in range(turns)]  # [4, streams] of each turn
    words = np.concatenate([x.reshape(-1) for x in rows])[:size]
    expected = words.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)
    np.testing.assert_array_equal(got, np.where(expected == 1, 0, expected))
    assert generator.default.get_offset() == 4 + 4 * turns


def test_normal_numbers_are_box_and_mullers():
    got = drawn(lambda: torch.randn(1000, dtype=torch.float64, device="ocl"))
    words = philox(3, np.arange(1024), 0).astype(np.uint64)
    u, v = (((words[i] ^ (words[i + 1] << np.uint64(21))).astype(np.float64) + 0.5) * 2.0**-53 for i in (0, 2))
    expected = np.sqrt(-2 * np.log(u)) * np.sin(2 * math.pi * v)
    np.testing.assert_allclose(got.numpy(), expected[:1000], rtol=1e-12, atol=1e-14)
    single = drawn(lambda: torch.randn(1000, device="ocl"))
    u, v = ((words[i].astype(np.float64) + 0.5) * 2.0**-32 for i in (0, 1))
    expected = np.sqrt(-2 * np.log(u)) * np.sin(2 * math.pi * v)
    np.testing.assert_allclose(single.numpy(), expected[:1000], rtol=2e-5, atol=1e-5)


TABLE = json.loads(Path(__file__).with_name("cuda_random.json").read_text())  # of an H100, torch 2.11
# These go through functions that each driver rounds in its own way; what an NVIDIA GPU makes of them is CUDA's, bit for bit.
ROUNDED = ("randn", "normal", "exponential", "cauchy", "log_normal")


DRAWS, SIZES = (list(dict.fromkeys(each)) for each in zip(*(name.rsplit(" ", 1) for name in TABLE), strict=True))


@pytest.mark.parametrize(("draw", "size"), in_turns(DRAWS, SIZES[::-1]))
def test_the_numbers_are_those_of_cuda(draw, size, monkeypatch):
    name = f"{draw} {size}"
    monkeypatch.setattr(streams, "most", lambda: 132 * 2048)
    plans.forget()
    made = cuda_random.seen(drawn(cuda_random.draws("ocl")[name], cuda_random.SEED))
    if name.startswith(ROUNDED) and not is_gpu:
        assert made["some"] == pytest.approx(TABLE[name]["some"], rel=1e-2 if "bfloat16" in name else 2e-4, abs=1e-4)
    else:
        assert made == TABLE[name]


MAKE = {
    "rand": lambda: torch.rand(900, device="ocl"),
    "randn": lambda: torch.randn(30, 30, device="ocl"),
    "half": lambda: torch.rand(900, dtype=torch.float16, device="ocl"),
    "bfloat16": lambda: torch.randn(900, dtype=torch.bfloat16, device="ocl"),
    "randint": lambda: torch.randint(-5, 9, (900,), device="ocl"),
    "bernoulli": lambda: torch.empty(900, device="ocl").bernoulli_(0.3),
    "bernoulli of each": lambda: torch.bernoulli(torch.full((900,), 0.3, device="ocl")),
    "exponential": lambda: torch.empty(900, device="ocl").exponential_(2),
    "multinomial": lambda: torch.multinomial(torch.ones(4, 5, device="ocl"), 90, True),
    "one class": lambda: torch.multinomial(torch.ones(90, 5, device="ocl"), 1),
    "randperm": lambda: torch.randperm(900, device="ocl"),
    "dropout": lambda: F.dropout(torch.ones(900, device="ocl"), 0.4),
    "dropout of pairs": lambda: F.dropout(torch.ones(902, device="ocl"), 0.4),
    "dropout of what is left over": lambda: F.dropout(torch.ones(901, device="ocl"), 0.4),
    "channels": lambda: F.dropout2d(torch.ones(90, 9, 2, 2, device="ocl"), 0.4),
    "rrelu": lambda: F.rrelu(-torch.ones(900, device="ocl"), training=True),
    "normal of each": lambda: torch.normal(torch.zeros(90, device="ocl"), torch.ones(90, device="ocl")),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_seed_repeats_and_another_does_not(make):
    """Also where the operator's plan is followed from the third call on."""
    plans.forget()
    runs = [drawn(make) for _ in range(5)]
    assert all(torch.equal(run, runs[0]) for run in runs)
    assert not torch.equal(drawn(make, seed=4), runs[0])
    torch.ocl.manual_seed(3)
    anew = [make().cpu() for _ in range(4)]
    assert torch.equal(anew[0], runs[0])
    assert not torch.equal(anew[1], anew[0])
    plans.forget()
    torch.ocl.manual_seed(3)
    assert all(torch.equal(make().cpu(), x) for x in anew)


@pytest.mark.parametrize("make", [MAKE[name] for name in ("randn", "dropout", "randint")])
def test_replays_of_a_captured_step_draw_on(make):
    torch.ocl.manual_seed(3)
    eager = [make().cpu() for _ in range(5)]
    torch.ocl.manual_seed(3)
    graph = torch.ocl.capture(make)
    assert torch.equal(graph.result.cpu(), eager[2])
    for expected in eager[3:]:
        graph.replay()
        assert torch.equal(graph.result.cpu(), expected)


def test_a_captured_step_may_draw_from_a_generator_of_its_own():
    own = torch.Generator(device="ocl").manual_seed(5)
    make = lambda: torch.rand(50, device="ocl", generator=own)  # noqa: E731
    eager = [make().cpu() for _ in range(4)]
    own.manual_seed(5)
    graph = torch.ocl.capture(make)
    graph.replay()
    assert torch.equal(graph.result.cpu(), eager[3])


def test_nothing_waits_for_the_device():
    reads = []
    queue.readers.append(lambda *what: reads.append(what))
    try:
        for make in MAKE.values():
            make()
    finally:
        queue.readers.pop()
    assert not reads


# Dropout.


def test_dropout_passes_gradcheck():
    x = torch.rand(7, 9, dtype=torch.float64, device="ocl", requires_grad=True)
    slopes = -torch.rand(5, 3, dtype=torch.float64, device="ocl")

    def seeded(function):
        def run(x):
            torch.ocl.manual_seed(1)
            return function(x)

        return run

    assert torch.autograd.gradcheck(seeded(lambda x: F.dropout(x, 0.3)), (x,))
    assert torch.autograd.gradcheck(seeded(lambda x: F.rrelu(x, training=True)), (slopes.requires_grad_(),))
    assert torch.autograd.gradcheck(seeded(lambda x: F.feature_alpha_dropout(x, 0.3, training=True)), (x,))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_draws_the_same_again(reentrant):
    x = torch.rand(64, 32, device="ocl", requires_grad=True)
    layer = torch.nn.Linear(32, 32).to("ocl")
    grads = []
    for run in (lambda f: f(x), lambda f: checkpoint(f, x, use_reentrant=reentrant)):
        torch.manual_seed(4)
        x.grad = None
        y = run(lambda x: F.dropout(layer(x), 0.5))
        torch.rand(3, device="ocl")  # between forward and backward somebody else draws
        y.square().sum().backward()
        grads.append((y.detach().cpu(), x.grad.cpu()))
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


# Generators.


def test_a_generator_of_the_device():
    g = torch.Generator(device="ocl")
    assert isinstance(g, torch.Generator)
    assert g.device == torch.device("ocl:0")
    assert g.manual_seed(5) is g
    assert g.initial_seed() == 5
    first = torch.rand(9, device="ocl", generator=g).cpu()
    state, offset = g.get_state(), g.get_offset()
    second = torch.rand(9, device="ocl", generator=g).cpu()
    for other in (copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()):
        other.set_state(state)
        assert torch.equal(torch.rand(9, device="ocl", generator=other).cpu(), second)
    g.set_offset(offset)
    assert torch.equal(torch.rand(9, device="ocl", generator=g).cpu(), second)
    assert torch.equal(torch.rand(9, device="ocl", generator=g.manual_seed(5)).cpu(), first)
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.seed() == g.initial_seed()
    torch.ocl.manual_seed(5)  # the device's own is another one
    torch.rand(3, device="ocl")
    assert g.get_offset() == 0
    assert torch.Generator("cpu").device.type == torch.Generator().device.type == "cpu"


def test_what_is_no_state_is_refused():
    g = torch.Generator("ocl")
    with pytest.raises(RuntimeError, match="wrong size: 3 bytes"):
        g.set_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="ByteTensor"):
        g.set_state(torch.zeros(16))
    with pytest.raises(RuntimeError, match="multiple of 4"):
        g.set_offset(3)
    with pytest.raises(RuntimeError, match="64 bits"):
        g.manual_seed(1 << 64)


def test_the_state_is_forked_and_restored():
    torch.manual_seed(8)
    with torch.random.fork_rng(device_type="ocl"):
        first = torch.rand(5, device="ocl").cpu()
    assert torch.equal(torch.rand(5, device="ocl").cpu(), first)
    states = torch.ocl.get_rng_state_all()
    second = torch.rand(5, device="ocl").cpu()
    torch.ocl.set_rng_state_all(states)
    assert torch.equal(torch.rand(5, device="ocl").cpu(), second)
    assert torch.ocl.initial_seed() == 8
    assert torch.ocl.default_generators[0].initial_seed() == 8
    torch.ocl.seed()
    assert torch.ocl.initial_seed() != 8


def test_a_generator_of_the_cpu_gives_its_numbers():
    expected = torch.rand(20, generator=torch.Generator().manual_seed(1))
    got = torch.rand(20, device="ocl", generator=torch.Generator().manual_seed(1))
    assert torch.equal(got.cpu(), expected)


def test_tensors_that_lie_otherwise_are_filled_too():
    whole = torch.zeros(40, 30, device="ocl")
    part = whole[::2, 3:9]
    torch.ocl.manual_seed(1)
    part.normal_(2, 0.1)
    assert (part.cpu() > 1).all()
    assert (whole.cpu() != 0).sum() == 120
    turned = drawn(lambda: torch.empty(30, 40, device="ocl").t().uniform_())
    assert torch.equal(turned.t().reshape(-1), drawn(lambda: torch.rand(1200, device="ocl")))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x.normal_(0, -1), lambda x: x.uniform_(2, 1), lambda x: x.exponential_(0), lambda x: x.bernoulli_(2),
        lambda x: x.random_(3, 3), lambda x: x.long().normal_(), lambda x: x.geometric_(1.5), lambda x: x.cauchy_(0, 0),
        lambda x: torch.multinomial(x, 7), lambda x: torch.multinomial(x, 0), lambda x: torch.multinomial(x.long(), 1),
    ],
)  # fmt: skip
def test_what_makes_no_distribution_is_refused(wrong):
    with pytest.raises(RuntimeError):
        wrong(torch.ones(5))
    with pytest.raises(RuntimeError):
        wrong(torch.ones(5, device="ocl"))


def test_with_the_cpus_numbers_a_program_draws_what_it_draws_on_the_cpu(monkeypatch):
    monkeypatch.setattr(generator, "host", True)

    def program(device):
        torch.manual_seed(4)
        order = torch.randperm(20)  # as a DataLoader's, on the CPU
        x = F.dropout(torch.ones(20, device=device), 0.5)
        saved = torch.ocl.get_rng_state()
        noise = torch.randn(20, device=device)
        torch.ocl.set_rng_state(saved)
        again = torch.randn(20, generator=torch.ocl.default_generators[0] if device == "ocl" else None, device=device)
        assert torch.equal(noise, again)
        turned = torch.ones(5, 4, device=device).t()  # is filled as it lies
        filled = [F.dropout(turned, 0.5), turned.clone().normal_(), torch.ones(9, 6, device=device)[::2, 1:].uniform_()]
        return [order.tolist(), x.tolist(), noise.tolist(), torch.rand(3).tolist(), [y.tolist() for y in filled]]

    assert program("ocl") == program("cpu")
