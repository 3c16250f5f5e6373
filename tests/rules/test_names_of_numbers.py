"""What a number is called that was read: not as the tensor was that it is of."""

import pytest
from rules.driver import HEAD, fixed

TWO = """
def noted(loss_tensor: torch.Tensor, norm_tensor: torch.Tensor):
    return {0: loss_tensor.item(), 1: norm_tensor.item()}
"""
LOOP = """
def turned(sizes_tensor: torch.LongTensor):
    found = []
    for i in range(4):
        found.append(sizes_tensor[i].item())
    return found
"""


@pytest.mark.parametrize(
    ("code", "named"), [(TWO, "loss_value, norm_value = "), (LOOP, "sizes_list = sizes_tensor.flatten().tolist()")]
)
def test_a_number_is_not_called_a_tensor(code: str, named: str) -> None:
    after = fixed(HEAD + code, "host-read")
    assert named in after
    assert "tensor_value" not in after
    assert "tensor_list" not in after
