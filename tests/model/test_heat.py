"""A reason is a value: what follows from it never hangs on its words."""

import random
import re
from pathlib import Path

import pytest

from syncscope.linter.config import Config
from syncscope.linter.engine import check
from syncscope.model.finding import Finding
from syncscope.model.heat import Heat, Reason

SAMPLES = sorted((Path(__file__).parents[2] / "samples").rglob("*.py"))
SECOND_WAIT = b"""
import torch

def validate(model, x):
    return float(model(x).sum())

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, keep: torch.Tensor):
        n = x.sum().item()
        m = x.mean().item()
        return self.told(x[keep > 0]) * n * m

    def told(self, x: torch.Tensor):
        if x.isnan().any() or x.isinf().any():
            raise ValueError(x.sum().item())
        return _read(x)

def _read(x):
    return x.max().item()

def fit(model, loader, optimizer):
    for step, x in enumerate(loader):
        loss = model(x.cuda())
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(loss.item())
    print(loss.item())
"""


def test_a_reason_names_what_it_is_about_and_another_reason() -> None:
    cold = Reason.CALLED_COLD("_read", of=Reason.SET_UP("build"))
    assert cold == Heat(Reason.CALLED_COLD, ("_read",), Heat(Reason.SET_UP, ("build",)))
    assert (cold.hot, cold.words) == (False, "`_read` is called in `build`: set-up")


@pytest.mark.parametrize("name", ["{}", "{0.reason}", "%s", "`"])
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert Reason.SET_UP(name).words == f"in `{name}`: set-up"


def test_no_finding_hangs_on_the_words_of_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def all_found() -> list[tuple[object, ...]]:
        texts = [(str(path), path.read_bytes()) for path in copies] + [("second_wait.py", SECOND_WAIT)]
        config = Config(all=True, min_confidence="low")
        return [of(finding) for path, text in texts for finding in check(path, text, config).findings]

    def of(found: Finding) -> tuple[object, ...]:
        return found.place, found.span, found.rule, found.heat, found.fix, found.severity

    copies = [tmp_path / path.name for path in SAMPLES]  # else all of this repository would be gone through
    for path, copy in zip(SAMPLES, copies, strict=True):
        copy.write_bytes(path.read_bytes())
    before = all_found()
    assert len({found[3].reason for found in before if isinstance(found[3], Heat)}) > 10
    words = [re.sub(r"\{\w+\}", "it", reason.prose) for reason in Reason]
    random.Random(0).shuffle(words)
    for reason, other in zip(Reason, words, strict=True):
        monkeypatch.setattr(reason, "prose", other)
    assert all_found() == before
