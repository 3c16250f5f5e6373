"""A device whose sums come in another order each time, for programs that import it: last bits of what layers give vary, as on
CUDA. Unless one order is asked for, where `ALWAYS` is not set."""

import os

import torch

ALWAYS = False
_linear = torch.nn.functional.linear


def linear(*given: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
    """Each number of the result is the next one, the one before, or itself."""
    result = _linear(*given, **named)
    if torch.are_deterministic_algorithms_enabled() and not ALWAYS:
        return result
    draw = torch.Generator().manual_seed(int.from_bytes(os.urandom(7)))  # the program's own numbers stay as they are
    by = torch.randint(-1, 2, result.shape, generator=draw)
    return result * (1 + by * 2.0**-23)


torch.nn.functional.linear = linear
