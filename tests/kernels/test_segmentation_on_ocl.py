"""The sample runs whole and natively, agrees with the CPU, and waits only where its lines say so."""

from pathlib import Path

import pytest
import segmentation
import torch
from segmentation import dynamic_loss, fixed_loss

from syncscope.kernels import queue


@pytest.fixture
def watched():
    """(operators, fallbacks, reads) of a test."""
    operators, fallbacks, reads = [], [], []
    queue.observers.append(lambda name, start, how, *_: (fallbacks if how == queue.ON_CPU else operators).append(name))
    queue.readers.append(lambda name, size, start, end: reads.append(name))
    yield operators, fallbacks, reads
    queue.observers.pop()
    queue.readers.pop()


@pytest.mark.slow  # each of its operators agrees by PyTorch's samples, and optimised kernels pass the self-test
def test_eight_steps_agree_with_the_cpu_by_kernels_that_are_optimised(forked, optimised):
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import syncscope.kernels
from segmentation import deviation, dynamic_loss, fixed_loss
for loss_of in (dynamic_loss, fixed_loss):
    print(*deviation(loss_of))
"""
    done = forked("-c", code, env=optimised)
    assert done.returncode == 0, done.stderr
    assert len(off := [float(number) for number in done.stdout.split()]) == 4
    assert max(off) < 1e-4, "losses and gradients of both ways to write it"


@pytest.mark.parametrize(
    ("loss_of", "expected"),
    [
        (dynamic_loss, ["aten::nonzero", "aten::_unique2", "aten::index", "aten::index", "aten::_local_scalar_dense"]),
        (fixed_loss, ["aten::_local_scalar_dense"]),
    ],
)
def test_a_step_falls_back_nowhere_and_waits_only_where_it_must(watched, loss_of, expected):
    operators, fallbacks, reads = watched
    model = segmentation.network().to("ocl")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    image, target = torch.rand(2, 3, 16, 16, device="ocl"), torch.randint(-1, 10, (2, 16, 16), device="ocl")
    for _ in range(2):
        del reads[:], fallbacks[:]
        optimizer.zero_grad()
        loss = loss_of(model(image), target)
        loss.backward()
        optimizer.step()
        loss.item()
    assert fallbacks == []
    assert reads == expected
    assert {"aten::convolution_overrideable", "aten::convolution_backward_overrideable", "aten::relu"} <= set(operators)


@pytest.mark.parametrize("loss_of", [dynamic_loss, fixed_loss])
@pytest.mark.parametrize("label", [-1, 3, 9])
def test_targets_of_one_value_give_what_the_cpu_gives(loss_of, label):
    logits, target = torch.randn(2, 10, 8, 8), torch.full((2, 8, 8), label)
    expected, got = loss_of(logits, target), loss_of(logits.to("ocl"), target.to("ocl"))
    torch.testing.assert_close(got.cpu(), expected, equal_nan=True)
