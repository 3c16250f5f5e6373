"""Random numbers that only the host needs are drawn there; what the device needs, too, stays on it."""

import pytest
from rules.driver import fixed

HEAD = "import torch\n\n\ndef f(x: torch.Tensor, n: int, generator):\n"
LEFT = {
    "the device needs it, too": "    r = torch.rand(1, device=x.device)\n    return r.item(), x * r\n",
    "by a generator": "    return torch.rand(1, device=x.device, generator=generator).item()\n",
    "beside a tensor there": "    if torch.rand(1, device=x.device) < x.mean():\n        x = x.flip(-1)\n    return x\n",
    "like another": "    return torch.rand_like(x.sum()).item()\n",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_the_device_has_to_do_with_is_drawn_there(name: str) -> None:
    before = HEAD + LEFT[name]
    assert fixed(before).count("device=x.device") == before.count("device=x.device")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.rand(1, device=x.device).item()", "torch.rand(1).item()"),
        (
            "int(torch.randint(0, n, (1,), dtype=torch.long, device=x.device))",
            "int(torch.randint(0, n, (1,), dtype=torch.long))",
        ),
        ("x * float(torch.rand(1, device=x.device)[0] * 2 - 1)", "x * float(torch.rand(1)[0] * 2 - 1)"),
        ("torch.randn(device=x.device, size=(1,)).item()", "torch.randn(size=(1,)).item()"),
    ],
)
def test_what_only_the_host_reads_is_drawn_on_it(before: str, after: str) -> None:
    assert fixed(f"{HEAD}    return {before}\n") == f"{HEAD}    return {after}\n"
