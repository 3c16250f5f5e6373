"""Which fixes of a program are tried, and in which order."""

from pathlib import Path

import pytest
from verify.programs import TRAIN

from syncscope.errors import UserError
from syncscope.verify import plan as plans
from syncscope.verify.plan import Plan

MOST = 4  # as if no more were tried

COPY = """
def shift{0}(device):
    return torch.zeros({0}).to(device)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A file full of copies, and one with a wait that stands behind it in the alphabet."""
    monkeypatch.setattr(plans, "MOST", MOST)
    many, train = tmp_path / "of_others" / "blocks.py", tmp_path / "train.py"  # apart: the program speaks of no block
    many.parent.mkdir()
    many.write_text("import torch\n" + "".join(map(COPY.format, range(2, 2 * MOST))))
    train.write_text(TRAIN)
    return str(many), str(train)


def test_lines_that_waited_come_first_however_many_others_there_are(project: tuple[str, str]) -> None:
    plan = Plan(project, waited=lambda path, lines: path == project[1])
    assert [candidate.number for candidate in plan.candidates] == list(range(MOST))
    assert {candidate.path for candidate in plan.candidates if candidate.finding.rule == "host-read"} == {project[1]}
    assert plan.candidates[0].path == project[1]
    assert plan.unlisted == 2 * MOST - 2 + 1 - MOST


def test_what_did_not_wait_is_listed_with_the_reason_and_after_all_others(project: tuple[str, str]) -> None:
    plan = Plan(project[1:], waited=lambda path, lines: False)
    (candidate,) = plan.candidates
    assert candidate.idle == "its line did not wait in these steps"
    assert not plan.unlisted


def test_copies_in_functions_that_did_not_run_are_not_tried(project: tuple[str, str]) -> None:
    called = range(3, 5)  # the first of the functions
    plan = Plan(project[:1], ran=lambda path, lines: not set(lines).isdisjoint(called))
    assert [candidate.line for candidate in plan.candidates if not candidate.idle] == [4]
    assert {c.idle for c in plan.candidates[1:]} == {"it did not run in these steps"}


def test_a_rule_that_does_not_exist_is_not_taken_for_one_without_fixes(project: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="no rule is called 'host-red'") as error:
        Plan(project, rules=["host-red"])
    assert error.value.hint == "did you mean 'host-read'?"


METERS = """
import torch

def {0}(model, criterion, optimizer, loader, device, meter):
    for image, target in loader:
        output = model(image.cuda())
        loss = criterion(output, target.cuda())
        loss.backward()
        optimizer.step()
        right = (output.argmax(1) == target).sum()
        meter.update(loss=loss.item())
        meter.update(right=right.item())
        print(output.mean().item(), output.std().item(), loss.item())  # pin_memory=True
"""


def test_what_is_offered_in_another_place_once_a_fix_is_made_is_held_to_the_same(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text(METERS.format("train") + METERS.format("evaluate"))
    wait = range(1, len(METERS.splitlines()))  # in the first of the functions

    def seen(path: str, lines: range) -> bool:
        return not set(lines).isdisjoint(wait)

    tried = [c for c in Plan([str(train)], waited=seen, ran=seen).candidates if not c.idle]
    assert "host-read" in {candidate.finding.rule for candidate in tried}
    assert all(candidate.line in wait for candidate in tried)


def test_what_is_edited_while_it_is_tried_is_tried_as_it_was(project: tuple[str, str]) -> None:
    """The program as written was the edited one then, and the rewritten one was not."""
    plan = Plan(project)
    assert plan.edited_meanwhile() == {}
    Path(project[1]).write_text("raise SystemExit\n")
    assert plan.edited_meanwhile() == {project[1]: TRAIN.encode()}
    Path(project[1]).unlink()
    assert plan.edited_meanwhile() == {project[1]: TRAIN.encode()}
