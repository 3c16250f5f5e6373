"""What only the parts in C do: its tests skip where there is no compiler. What is left to Python is in `docs/trace.md`."""

from pathlib import Path

import pytest

import syncscope
from syncscope import native

_WHY = native.why_not(Path(syncscope.__file__).parent / "tracers" / "hooks" / "methods.c")
in_c = pytest.mark.skipif(bool(_WHY), reason=_WHY)
