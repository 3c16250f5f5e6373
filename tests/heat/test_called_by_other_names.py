"""What a step calls under a name like its class's, or asks an object for by its name, runs in it."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

HELD = """
import torch

class PostProcess(torch.nn.Module):
    @torch.no_grad()
    def forward(self, boxes: torch.Tensor):
        return self._kept(boxes) if boxes.sum() > 0 else boxes

    def _kept(self, boxes: torch.Tensor):
        return boxes[boxes.sum().item():]

class Matcher(torch.nn.Module):
    def forward(self, boxes: torch.Tensor):
        return boxes

    @torch.no_grad()
    def match_all(self, boxes: torch.Tensor):
        return boxes.sum().item()
"""


@pytest.mark.parametrize(
    ("step", "hot"),
    [
        ("return self.postprocess(x)", {7, 10}),
        ("return self.post_processor(x)", {7, 10}),
        ("return self.processed(x)", set()),
        ("if step % 100 == 0:\n            return self.postprocess(x)", set()),
        ("match = getattr(type(self.matcher), 'match_all', None)\n        return match(self.matcher, x)", {18}),
        ("match = getattr(self.matcher, 'match_none', None)\n        return match(x)", set()),
    ],
)
def test_what_is_called_like_its_class_or_asked_for_by_name_runs_in_the_step(
    step: str, hot: set[int], tmp_path: Path
) -> None:
    trainer = f"import torch\n\nclass Trainer:\n    def training_step(self, x, step):\n        {step}\n"
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "parts.py").write_text(HELD)
    (tmp_path / "trainer.py").write_text(trainer)
    found = sites(HELD.encode(), str(tmp_path / "parts.py"), Project())
    assert {site.place.line for site in found if site.hot} == hot
