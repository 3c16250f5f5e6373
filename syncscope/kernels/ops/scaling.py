"""What `torch.amp.GradScaler` asks for: gradients unscaled and looked through for infinities, the scale moved; no wait."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import lists, queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.programs import kernel

_UNSCALE = lists.Listwise(
    "unscale",
    "const T g = LOAD(self, i); if (!isfinite(g)) found_inf[0] = 1; STORE(g * inv_scale[0], self, i);",
    ("self",),
    common=("found_inf", "inv_scale"),
)


@op("_amp_foreach_non_finite_check_and_unscale_")
def unscale(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiplies all gradients by `inv_scale`; `found_inf` becomes 1 if one was infinite or no number."""
    lists.run(_UNSCALE, (self,), common=(found_inf, inv_scale))


@op("_amp_update_scale_")
def update_scale(
    self: Tensor, growth_tracker: Tensor, found_inf: Tensor, up: float, down: float, interval: int
) -> Tensor:
    """The scale of the next step, and for how many steps it has been growing."""
    if (self.dtype, growth_tracker.dtype, found_inf.dtype) != (torch.float32, torch.int32, torch.float32):
        raise NotNative
    places = [x for t in (self, growth_tracker, found_inf) for x in (storage.buffer(t), t.storage_offset())]
    queue.launch(kernel("scaling", "update_scale"), (1,), (1,), *places, up, down, interval)
    return self
