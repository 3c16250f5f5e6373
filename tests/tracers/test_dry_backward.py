"""A dry run hears what waits in a backward pass: in hooks, and in the `backward` of functions of one's own."""

from collections.abc import Callable

import pytest

from syncscope import SyncError, forbid_syncs

torch = pytest.importorskip("torch")


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient / 2 if gradient.norm() > 1 else gradient


def in_a_hook_of_a_tensor(x):
    x.register_hook(lambda gradient: gradient * min(1.0, 1 / gradient.norm().item()))
    return x * 2


def in_a_hook_behind_a_parameter(x):
    layer = torch.nn.Linear(3, 2)
    layer.weight.register_post_accumulate_grad_hook(lambda weight: print(weight.grad.sum().item()))
    return layer(x)


def in_a_hook_of_a_module(x):
    layer = torch.nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda module, given, came: print(came[0].sum().item()))
    return layer(x)


@pytest.mark.parametrize(
    "of", [in_a_hook_of_a_tensor, in_a_hook_behind_a_parameter, in_a_hook_of_a_module, Clipped.apply]
)
def test_a_wait_in_a_backward_pass_is_no_less_forbidden(of: Callable) -> None:
    x = torch.ones(4, 3, requires_grad=True)
    with pytest.raises(SyncError), forbid_syncs(dry=True):
        of(x).sum().backward()


def test_what_computes_with_gradients_alone_waits_for_nothing() -> None:
    x = torch.ones(4, 3, requires_grad=True)
    x.register_hook(lambda gradient: gradient * torch.clamp(1 / gradient.norm(), max=1.0))
    with forbid_syncs(dry=True):
        (x * 2).sum().backward()
        assert torch.arange(3).sum().item() == 3, "behind the pass the host's tensors are its own"
