"""What people call what says where a model lives, and what comes from elsewhere."""

import os
import re
from functools import lru_cache

from syncscope.project.conventions import LAUNCHERS, MODELS

SETTINGS = frozenset("cfg config conf model_config opt opts options hparams".split())
"""What holds numbers, texts and flags, and no tensors."""
_KNOW_DEVICE = SETTINGS | frozenset(
    "self cls args model net network module trainer engine runner learner agent policy".split()
)

BATCHES = frozenset("batch data sample samples minibatch mini_batch batch_data data_batch".split())
OF_A_BATCH = re.compile(r"(^|_)(step|batch|iteration|iter)$")
"""Functions that are given a batch as a loader made it, where they send parts of it to the device themselves."""


_NAMED = re.compile(r"device|(^|_)(dev|gpu|rank)$")


def is_one(name: str) -> bool:
    """Whether people call a device so, or what says which: `device`, `local_rank`, `dev()`."""
    return _NAMED.search(name) is not None


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


_TYPE = re.compile(rb"""^[ \t]*torch\.set_default_tensor_type\([^)\n]*cuda""", re.MULTILINE)


@lru_cache(maxsize=16)
def switches_type(source: bytes) -> bool:
    """Whether a file has `torch.Tensor(values)` made on another device, which a default device leaves on the host."""
    return b"torch.set_default_tensor_type(" in source and _TYPE.search(source) is not None


DEFAULT = "torch.default_device"
"""By this name a file is asked for where torch makes what it is told no device of, as if it were a function: on the host, where
steps reach it."""
DEFAULT_TYPE = "torch.default_tensor_type"
"""By this name the same is asked of `torch.Tensor(values)`."""
_WRITTEN = re.compile(rb"""^[ \t]*torch\.set_default_(?:device|tensor_type)\([^)\n]*cuda""", re.MULTILINE)


def switched_for(path: str, source: bytes, outside: bytes) -> str | None:
    """The folder for whose files a file of the project switches it: a program for those beside and below itself, what others
    import for all (""), when it is imported, or in a function that says which; a method does so for the algorithm that its
    folder is about. `outside` is its text outside of functions.
    """
    if not switches_default(source):
        return None
    if b"__main__" in source:
        return os.path.dirname(path)
    if _DEFAULT.search(outside):
        return ""
    written = _WRITTEN.search(source)
    if written is None:
        return None
    *_, around = (b"def", *(each[1] for each in _AT_TOP.finditer(source, 0, written.start())))
    return os.path.dirname(path) if around == b"class" else ""


_AT_TOP = re.compile(rb"^(?:async )?(class|def) ", re.MULTILINE)


def on_cpu(name: str) -> bool:
    """Whether a flag is called like one that asks for the CPU: `assign_on_cpu`, `cpu_offload`."""
    return bool(re.search(r"(^|_)(cpu|offload)(_|$)", name.lower()))


def is_model(name: str) -> bool:
    """Whether people call so what is moved to a device as a whole, once: a network, or a loss that has parameters."""
    return name in MODELS or name.lower().endswith(("model", "net", "network", "criterion", "loss"))


@lru_cache(maxsize=10_000)  # asked of each method of what is not known
def is_network(name: str) -> bool:
    """Whether people call so a network that is called, and gives a tensor: `self.critic(states)`, `agent.q_net(x)`."""
    return name.lower().endswith(
        ("model", "net", "net1", "net2", "network", "critic", "backbone", "encoder", "decoder")
    )
