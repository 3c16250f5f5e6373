"""A copy that somebody made by hand is no part of what trains: the file it was made of is."""

import pytest

from syncscope.linter.config import Config
from syncscope.linter.engine import check_file

STEP = """import torch


def training_step(x: torch.Tensor):
    return x * torch.tensor(0.5, device=x.device)
"""


@pytest.mark.parametrize(
    ("name", "hot"),
    [
        ("model/step.py", True),
        ("model copy/step.py", False),
        ("model - Copy (2)/step.py", False),
        ("step copy.py", False),
        ("deep_copy.py", True),
        ("copy.py", True),
    ],
)
def test_a_wait_in_a_copy_is_cold(tmp_path, name, hot):
    (tmp_path / "setup.py").write_text("")
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STEP)
    (found,) = check_file(str(path), Config(all=True)).findings
    assert found.hot is hot
