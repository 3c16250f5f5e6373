"""What we do in the process of a program, unseen in the numbers that it draws: rich draws one when it is imported."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Inside, Python's random numbers may be drawn: behind it they go on as before."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
