"""A library that makes some calls slow, as a device would that is behind, and one call wrong. Its time is `drawn_clock`'s."""

from pathlib import Path

CLOCK = Path(__file__).with_name("drawn_clock.py")
DEVICE = """
import time
import drawn_clock
import torch

_item, _to, _ones = torch.Tensor.item, torch.Tensor.to, torch.ones

def item(self):
    time.sleep(0.004)
    return _item(self)

def to(self, *args, **kwargs):
    if self.numel() == 3:
        time.sleep(0.004)
    return _to(self, *args, **kwargs)

def ones(*size, **options):
    return _ones(*size, **options) * (1.001 if options else 1.0)

torch.Tensor.item, torch.Tensor.to, torch.ones = item, to, ones
"""
REAL = DEVICE.replace("import drawn_clock\n", "")  # by the machine's own clock


def put_device(folder: Path, text: str = DEVICE) -> Path:
    """The library as a file of a folder, beside its clock."""
    (folder / CLOCK.name).write_text(CLOCK.read_text())
    (folder / "slow_device.py").write_text(text)
    return folder / "slow_device.py"
