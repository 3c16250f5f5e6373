"""Values of the host that once were taken for the device's: `# waits: op` marks every line that waits, and no other line."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "a number that may be a tensor, and nobody passes one": """
        def low(bits: torch.Tensor, signed: bool | torch.Tensor):
            sign = signed.item() if isinstance(signed, torch.Tensor) else signed
            return -bits if sign else bits
    """,
    "a number that may be a tensor, and is": """
        def penalty(x: torch.Tensor, weight: float | torch.Tensor):
            scale = weight.item() if isinstance(weight, torch.Tensor) else weight  # waits: item
            return x * scale

        def loss(x: torch.Tensor, target: torch.Tensor):
            return penalty(x, (target > 0).float().mean()).sum()
    """,
    "what is called only for tensors of the host": """
        class Scaler:
            def _unscale_cpu_(self, grads: list[torch.Tensor], scale: torch.Tensor):
                for grad in grads:
                    if torch.isinf(grad).any().item():
                        break
                    grad.data *= scale.item()

            def _unscale_(self, grads: list[torch.Tensor], scale: torch.Tensor):
                for grad in grads:
                    grad.data *= scale.item()  # waits: item

            def _update_cpu_(self, found: torch.Tensor):
                return found.item()

            def unscale_cpu(self, found: torch.Tensor):
                return found.item()  # waits: item

            def _other(self, found: torch.Tensor):
                return found.item()  # waits: item

            def unscale(self, grads, scale: torch.Tensor):
                if grads[0].device.type == "cpu":
                    self._unscale_cpu_(grads, scale)
                    self.unscale_cpu(scale)
                    self._other(scale)
                else:
                    self._unscale_(grads, scale)
                if scale.device.type != "cpu":
                    return self._other(scale)
                else:
                    return self._update_cpu_(scale)
    """,
    "a dict that is given what an array holds": """
        import numpy as np

        class Net(nn.Module):
            def forward(
                self,
                inputs: dict[str, torch.Tensor] | tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]],
                targets: torch.Tensor,
            ):
                if isinstance(inputs, tuple):
                    inputs, given = inputs
                    for name, value in given.items():
                        given[name] = torch.from_numpy(value)
                for key in inputs.keys():
                    targets[key] = torch.from_numpy(inputs[key])
                targets["more"] = torch.from_numpy(inputs)
                targets[0] = torch.from_numpy(np.zeros(3))  # waits: to_device
                return inputs
    """,
    "a number of the host, and a setting, where a number is taken": """
        def hook(module, output: torch.Tensor, scale: torch.Tensor):
            dims = torch.tensor(output.size(1) * output.size(2))
            most = module.noise_alpha / torch.sqrt(dims)
            output = output + torch.zeros_like(output).uniform_(-most, most)
            return output.uniform_(0, scale.sum())  # waits: scalar_slot
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
