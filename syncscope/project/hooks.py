"""What people call the hooks of a training loop: those that a step calls, and those that run around many of them.

Which is which is said by the last part of the name: `after_backward`, `before_training_iteration`, `after_training_exp`.
"""

import re
from functools import lru_cache

_ASIDE = r"(?!.*(?:^|_)(?:val|valid|validation|test|eval|evaluation|predict|inference|generate|sample)(?:_|$))"
_STEP = re.compile(
    rf"^_*{_ASIDE}(?:(?:before|after)_(?:\w+_)?(?:forward|backward|batch|step|iteration|iter|update|loss)|"
    r"on_(?:\w+_)?(?:batch|step|iteration|iter|backward)_(?:start|end|begin)|"
    r"on_(?:\w+_)?(?:optimizer_step|backward|zero_grad)|on_after_batch_transfer|transfer_batch_to_device)$"
)
_BACKWARD = re.compile(
    rf"^_*{_ASIDE}(?!_*(?:is|has|needs?|supports?|requires?|check|test|enable|disable|register|setup|build|get)_)\w+_backward$"
)
# between its backward pass and its end
_CLIPS = re.compile(r"^_?clip_grad(?:s|ients?)?(?:_(?:by_)?(?:norm|value)s?)?_?$")
_AROUND = re.compile(
    r"^_*(?:before|after)_(?:\w+_)?(?:exp|experience|epoch|fit|run|train|training|stage|task|experiment|simulation|session)$|"
    r"^_*(?:\w+_)?on_\w*(?:stage|epoch|loader|fit|train|training|experiment|simulation|run|validation|test|predict|exception|"
    r"checkpoint)_(?:start|end|begin)$|^_*(?:begin|start|end|finish)_(?:task|epoch|stage|experience|training)$"
)

OF_STATE = re.compile(r"^_?register_(?:load_)?state_dict_(?:pre_|post_)?hook$")
"""Methods of modules and optimizers that take what is called where their state is loaded or saved."""


@lru_cache(maxsize=10_000)  # asked for every function of a project
def of_step(name: str) -> bool:
    """Whether it is a hook that a training step calls, `after_backward`, `on_train_batch_end`, a transform's `encodes`, what
    takes the batch of BasicSR's `optimize_parameters`, or is called like a backward pass, `projected_backward`, or clips
    gradients.
    """
    if name in ("encodes", "feed_data") or _BACKWARD.match(name) is not None or _CLIPS.match(name) is not None:
        return True
    return "_" in name and _STEP.match(name) is not None


def of_callback(name: str) -> bool:
    """Whether it is one that a trainer calls of all its callbacks, `on_step_end`, whatever they are for: in every step."""
    return name.startswith("on_") and of_step(name)


@lru_cache(maxsize=10_000)
def around_steps(name: str) -> bool:
    """Whether it is a hook that is called once for many steps: `on_train_epoch_end`, `after_training_exp`."""
    return "_" in name and _AROUND.match(name) is not None
