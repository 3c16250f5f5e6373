"""Where a project leaves the checks of distributions out, or compiles what holds them, nothing waits for their answers."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites


def test_a_project_that_switches_the_checks_of_distributions_off_has_none(tmp_path: Path) -> None:
    model = (
        "import torch\n\ndef forward(x: torch.Tensor):\n    return torch.distributions.Normal(x, x.exp()).rsample()\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model.py").write_text(model)
    (tmp_path / "base.py").write_text("from torch.distributions import Distribution\n")

    def ops() -> list[str]:
        return [site.op for site in sites(model.encode(), str(tmp_path / "model.py"), Project())]

    assert ops() == ["distribution_validate"]
    with (tmp_path / "base.py").open("a") as file:
        file.write("Distribution.set_default_validate_args(False)\n")
    assert ops() == []


@pytest.mark.parametrize(
    ("trainer", "checked"),
    [
        ("def run(agent):\n    agent.model = torch.compile(agent.model, mode='default')\n", False),
        (
            "def run(a, off):\n    if off:\n        print('off')\n    else:\n        a.net = torch.compile(a.net)\n",
            False,
        ),
        ("def run(model):\n    if hasattr(torch, 'compile'):\n        model = torch.compile(model)\n", False),
        ("def run(model, fast):\n    if fast:\n        model = torch.compile(model)\n", True),
        ("def run(model, other):\n    model = torch.compile(other)\n", True),
        ("def run(step):\n    step = torch.compile(step)\n", True),
    ],
)
def test_a_project_that_compiles_its_model_checks_no_distributions(trainer: str, checked: bool, tmp_path: Path) -> None:
    model = (
        "import torch\n\ndef forward(x: torch.Tensor, dist):\n    pi = torch.distributions.Normal(x, x.exp())\n"
        "    return pi.rsample(), dist.log_prob(x)\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model.py").write_text(model)
    (tmp_path / "trainer.py").write_text(f"import torch\n\n{trainer}")
    found = [site.op for site in sites(model.encode(), str(tmp_path / "model.py"), Project())]
    assert found == (["distribution_validate"] * 2 if checked else [])


@pytest.mark.parametrize(
    ("code", "checked"),
    [
        ("@torch.compile\ndef forward(x: torch.Tensor):\n    return x\n", False),
        ("forward = torch.compile(torch.exp)\n", False),
        ("@torch.compile(disable=True)\ndef forward(x: torch.Tensor):\n    return x\n", True),
        ("def compiled(model):\n    return torch.compile(model)\n", True),
    ],
)
def test_what_a_file_compiles_as_it_is_read_switches_the_checks_of_distributions_off(code: str, checked: bool) -> None:
    draw = "def draw(x: torch.Tensor):\n    return torch.distributions.Normal(x, x.exp()).rsample()\n"
    code = f"import torch\n\n{code}\n\n{draw}"
    ops = [site.op for site in sites(code.encode(), "model.py")]
    assert ops == (["distribution_validate"] if checked else [])
