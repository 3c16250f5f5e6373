"""How people call folders and files whose code is for training steps, whoever calls it."""

FOLDERS = frozenset(
    """functional functionals loss losses criterion criterions criteria objective objectives augmentation augmentations
    ops geometry""".split()
)
"""What stands there is called with what a step computes: losses, operators on tensors, changes of a batch."""
