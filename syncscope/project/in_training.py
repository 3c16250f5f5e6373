"""How people call folders and files whose code is for training steps, whoever calls it."""

import re

FOLDERS = frozenset(
    """functional functionals loss losses criterion criterions criteria objective objectives augmentation augmentations
    ops geometry""".split()
)
"""What stands there is called with what a step computes: losses, operators on tensors, changes of a batch."""
SENDS = re.compile(r"(^|_)to_(device|cuda|gpu)(_|$)|^(deep|batch|tree|recursive(ly)?|move)_to$")
"""Functions by which a trainer sends its batches, wherever they stand."""
