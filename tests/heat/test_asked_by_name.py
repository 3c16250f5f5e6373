"""What a step has others call by its name runs in it: `self.call_hook("masking", x)`."""

from pathlib import Path

import pytest

from syncscope.model.ops import Op
from syncscope.tensors.interpret import Project, sites

HOOKS = """
import torch

class Fixed:
    @torch.no_grad()
    def masking(self, x: torch.Tensor):
        return x.sum().item()

class Adaptive:
    @torch.no_grad()
    def masking(self, x: torch.Tensor):
        return kept(x)

    @torch.no_grad()
    def forget(self, x: torch.Tensor):
        return x.sum().item()

def kept(x: torch.Tensor):
    return x[x.sum().item():]
"""
AT_ONCE = "return getattr(self.hooks[which], name)(*args)"
LATER = "ask = getattr(self.hooks[which], name, None)\n        return ask(*args)"


@pytest.mark.parametrize(
    ("body", "step", "hot"),
    [
        (AT_ONCE, "self.call_hook('masking', 'fixed', x)", {7, 19}),
        (LATER, "self.call_hook('masking', 'fixed', x)", {7, 19}),
        ("return getattr(self.hooks[which], name)", "self.call_hook('masking', 'fixed', x)", set()),  # nobody calls it
        (AT_ONCE, "self.call_hook('other', 'masking', x)", set()),
        (AT_ONCE, "if step % 100 == 0:\n            self.call_hook('masking', 'fixed', x)", {19}),
    ],
)
def test_what_is_called_by_its_name_runs_in_the_step(body: str, step: str, hot: set[int], tmp_path: Path) -> None:
    calls = f"    def call_hook(self, name, which, *args):\n        {body}\n"
    trainer = f"import torch\n\nclass Trainer:\n{calls}\n    def training_step(self, x, step):\n        {step}\n"
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "trainer.py").write_text(trainer)
    found = sites(HOOKS.encode(), str(tmp_path / "hooks.py"), Project())
    assert {site.place.line for site in found if site.hot} == hot


REDUCER = """
import torch

class Reducer(torch.nn.Module):
    def forward(self, losses, kind):
        return self.chosen(kind)(losses)

    def chosen(self, kind):
        return {asked}

class Kept(Reducer):
    def element_reduction(self, losses: torch.Tensor):
        return self.helper(losses)

    def reduction_of_pairs(self, losses: torch.Tensor):
        return losses / losses.sum().item()  # begins so

    def other(self, losses: torch.Tensor):
        return losses / losses.max().item()

    def helper(self, losses: torch.Tensor):
        return losses[losses > losses.mean().item()].mean()  # ends so
"""


@pytest.mark.parametrize(
    ("asked", "hot"),
    [
        ("getattr(self, f'{kind}_reduction')", "ends so"),
        ("getattr(self, '{}_reduction'.format(kind))", "ends so"),
        ("getattr(self, '%s_reduction' % kind)", "ends so"),
        ("getattr(self, kind + '_reduction')", "ends so"),
        ("getattr(self, 'reduction_' + kind)", "begins so"),
        ("getattr(self, f'reduction_of_{kind}', None)", "begins so"),
        ("getattr(self, kind)", ""),
        ("getattr(self, f'{kind}')", ""),
    ],
)
def test_a_method_whose_name_is_put_together_runs_where_it_is_asked_for(asked: str, hot: str, tmp_path: Path) -> None:
    code = REDUCER.format(asked=asked)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "reducer.py").write_text(code)
    (tmp_path / "train.py").write_text(
        "from reducer import Kept\n\ndef training_step(model, batch):\n    return Kept()(model(batch), 'pairs')\n"
    )
    found = sites(code.encode(), str(tmp_path / "reducer.py"), Project())
    lines = code.splitlines()
    said = {lines[site.place.line - 1].partition("  # ")[2] for site in found if site.hot and site.op is not Op.FORMAT}
    assert said == ({hot} if hot else set())
