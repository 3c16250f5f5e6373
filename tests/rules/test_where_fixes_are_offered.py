"""What stands around a line decides what its fix takes along: a condition, a loop of steps, the project."""

from pathlib import Path

import pytest
from rules.driver import config, fixed

from syncscope.linter.engine import check_file


@pytest.mark.parametrize("name", ["gan.py", "digits.py"])
def test_a_sample_is_offered_its_fixes_inside_the_project(name: str, tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "samples" / name
    alone = tmp_path / name
    alone.write_bytes(sample.read_bytes())
    inside, outside = ([f.fix is not None for f in check_file(str(p), config()).findings] for p in (sample, alone))
    assert any(inside)
    assert inside == outside


def test_a_condition_goes_with_what_stands_under_it_alone() -> None:
    step = "        loss.backward()\n"
    head = (
        "import torch\n\n\ndef train(model, xs):\n    for step, x in enumerate(xs):\n        loss = model(x).mean()\n"
    )
    assert fixed(f"{head}{step}        if step % 9 == 0:\n            torch.cuda.empty_cache()\n") == head + step


@pytest.mark.parametrize(
    ("over", "rarely"),
    [
        ("for k, v in losses.items():", False),
        ("for v in [losses['a'], losses['b']]:", False),
        ("for i, k in enumerate(sorted(losses)):", False),
        ("for v in train_loader:", True),
        ("for i, v in enumerate(tqdm(train_loader)):", True),
        ("for v in range(9):", True),
    ],
)
def test_only_what_steps_write_is_written_rarely(over: str, rarely: bool) -> None:
    code = (
        "import torch\nfrom tqdm import tqdm\n\n\ndef f(writer, losses: dict, x: torch.Tensor, train_loader):\n"
        f"    {over}\n        writer.add_scalar('loss', x.mean().item())\n"
    )
    assert ("% 50 == 0" in fixed(code, "host-read")) is rarely
