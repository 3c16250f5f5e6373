"""The samples do what they say: real data, the same values from both losses, and no wait left in the fixed one."""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("sklearn"), reason="the photographs are scikit-learn's")

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(scope="module")
def segmentation() -> SimpleNamespace:
    """The sample; it imports scikit-learn, for longer than torch takes."""
    return SimpleNamespace(**runpy.run_path(str(SAMPLES / "segmentation.py")))


def labels(what: str) -> "torch.Tensor":
    """Labels of a batch of two 12 x 12 crops, with everything, one thing or nothing to learn."""
    torch.manual_seed(0)
    mixed = torch.randint(-1, 10, (2, 12, 12))
    return {
        "mixed": mixed,
        "nothing ignored": mixed.clamp(0, 8),
        "everything ignored": torch.full_like(mixed, -1),
        "only background": torch.full_like(mixed, 9),
        "one class": torch.full_like(mixed, 3),
        "one class and ignored": torch.where(mixed < 0, -1, 3),
    }[what]


@pytest.mark.parametrize(
    "what",
    ["mixed", "nothing ignored", "everything ignored", "only background", "one class", "one class and ignored"],
)
def test_both_losses_are_one_loss(what: str, segmentation: SimpleNamespace) -> None:
    target = labels(what)
    values, gradients = [], []
    for loss_of in (segmentation.loss_as_written, segmentation.loss_in_fixed_shapes):
        logits = torch.randn(2, 10, 12, 12, generator=torch.Generator().manual_seed(1)).requires_grad_()
        loss = loss_of(logits, target)
        loss.backward()
        values.append(loss.detach())
        gradients.append(logits.grad)
    torch.testing.assert_close(values[0], values[1], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-6, atol=1e-9)
    learns = what in ("mixed", "nothing ignored", "one class and ignored")
    assert bool(values[0] > 0) == learns  # with one label or none, both are exactly zero


def test_the_crops_are_photographs_with_every_label(segmentation: SimpleNamespace) -> None:
    images, target = segmentation.crops(24, 64).tensors
    assert images.shape == (24, 3, 64, 64)
    assert 0 <= images.min() < 0.1 < 0.9 < images.max() <= 1
    assert target.unique().tolist() == list(range(-1, 10))


@pytest.mark.parametrize(("size", "fits"), [(0, False), (427, True), (428, False)])
def test_a_crop_larger_than_the_photographs_is_an_error_of_usage(
    size: int, fits: bool, capsys: pytest.CaptureFixture[str], segmentation: SimpleNamespace
) -> None:
    if fits:
        (image,) = segmentation.crops(1, segmentation.arguments([f"--size={size}"]).size).tensors[0]
        assert image.shape == (3, size, size)
        return
    with pytest.raises(SystemExit, match="2"):
        segmentation.arguments([f"--size={size}"])
    assert f"--size {size}: the photographs are 427 pixels high" in capsys.readouterr().err


@pytest.mark.parametrize("fixed", [pytest.param(False, marks=pytest.mark.slow), True], ids=["as written", "fixed"])
def test_training_on_the_cpu_lowers_the_loss(fixed: bool, segmentation: SimpleNamespace) -> None:
    options = segmentation.arguments(["--device=cpu", "--size=32", "--steps=30", *["--fixed"] * fixed])
    history = segmentation.train(options)
    assert sum(history[-5:]) < sum(history[:5])


def test_both_losses_train_alike(segmentation: SimpleNamespace) -> None:
    histories = [
        segmentation.train(segmentation.arguments(["--device=cpu", "--size=32", "--steps=8", *["--fixed"] * fixed]))
        for fixed in (False, True)
    ]
    assert histories[0] == pytest.approx(histories[1], abs=1e-5)


@pytest.mark.parametrize(("sample", "said"), [("gan", "Loss_D"), ("digits", "held out")])
def test_the_other_samples_run(
    sample: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"gan": ["--steps", "3"], "digits": ["--epochs", "1"]}[sample]
    monkeypatch.setattr(sys, "argv", [sample, *short])
    runpy.run_path(str(SAMPLES / f"{sample}.py"), run_name="__main__")
    assert said in capsys.readouterr().out
