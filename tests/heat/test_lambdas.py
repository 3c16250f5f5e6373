"""What a lambda at the top level of a file computes is computed where it is called, as what `def` makes there."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites

CODE = """
import torch

device = torch.device("cuda")
psnr = lambda x: -10.0 * torch.log(x).sum().item()  # hot
validate = lambda x: x.sum().item()  # cold
total = torch.ones(3, device=device).sum().item()  # cold
"""
MARKS = {number: line.rpartition("# ")[2] for number, line in enumerate(CODE.splitlines(), 1) if "# " in line}


@pytest.mark.parametrize("line", MARKS)
def test_a_lambda_is_as_hot_as_its_name(line: int) -> None:
    assert heat(CODE.encode(), "train.py")[line] == MARKS[line]


def test_a_lambda_that_is_asked_for_what_the_host_needs_is_so_in_each_step_that_calls_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    tools = tmp_path / "arrays.py"
    tools.write_text(
        "import torch\n\nto_np = lambda x: x.detach().cpu().numpy()\nto_list = lambda x: x.detach().cpu().tolist()\n"
        "SIZE = 3\n\ndef rows():\n    return SIZE\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom arrays import to_np\n\ndef train(net, loader, optimizer):\n    for x in loader:\n"
        "        loss = net(x).mean()\n        loss.backward()\n        optimizer.step()\n        print(to_np(loss))\n"
    )
    assert [site.hot for site in sites(tools.read_bytes(), str(tools), Project())] == [True, False]
