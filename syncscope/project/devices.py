"""What people call what says where a model lives, and what comes from elsewhere."""

import re
from functools import lru_cache

from syncscope.project.conventions import LAUNCHERS, MODELS

SETTINGS = frozenset("cfg config conf model_config opt opts options hparams".split())
"""What holds numbers, texts and flags, and no tensors."""
_KNOW_DEVICE = SETTINGS | frozenset(
    "self cls args model net network module trainer engine runner learner agent policy".split()
)

BATCHES = frozenset("batch data sample samples minibatch mini_batch".split())
OF_A_BATCH = re.compile(r"(^|_)(step|batch|iteration|iter)$")
"""Functions that are given a batch as a loader made it, where they send parts of it to the device themselves."""


def knows_device(name: str) -> bool:
    """Whether people call so what knows where the model lives, and is no tensor: `self.device`, `args.device`."""
    return name in _KNOW_DEVICE or name.endswith(LAUNCHERS)


_DEFAULT = re.compile(
    rb"""^[ \t]*torch\.set_default_(?:device\((?![ \t]*["'](?:cpu|meta))|tensor_type\([^)\n]*cuda)""", re.MULTILINE
)


@lru_cache(maxsize=16)
def switches_default(source: bytes) -> bool:
    """Whether a file has torch make on another device what it is told no device of: `torch.set_default_device(device)`."""
    return b"torch.set_default_" in source and _DEFAULT.search(source) is not None


def on_cpu(name: str) -> bool:
    """Whether a flag is called like one that asks for the CPU: `assign_on_cpu`, `cpu_offload`."""
    return bool(re.search(r"(^|_)(cpu|offload)(_|$)", name.lower()))


def is_model(name: str) -> bool:
    """Whether people call so what is moved to a device as a whole, once: a network, or a loss that has parameters."""
    return name in MODELS or name.lower().endswith(("model", "net", "network", "criterion", "loss"))
