"""fastai: the batch that a learner lends its callbacks, on the device."""

from __future__ import annotations

_BATCHES = frozenset(("xb", "yb"))


def batch(word: str, source: bytes) -> bool:
    """Whether an attribute is what a learner calls its batch, a tuple of tensors: `self.learn.xb`."""
    return word in _BATCHES and b"fastai" in source
