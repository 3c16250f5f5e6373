"""A library that makes some calls slow, as a device would that is behind, and one call wrong."""

DEVICE = """
import time
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
