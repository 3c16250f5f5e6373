"""What only the parts in C do: its tests skip where there is no compiler, and fail where one does not compile the parts.
What is left to Python is in `docs/trace.md`."""

import os
import shutil
from pathlib import Path

import pytest

import syncscope
from syncscope import native

_HAS_COMPILER = shutil.which(os.environ.get("CC", "cc")) is not None
_WHY = "" if _HAS_COMPILER else native.why_not(Path(syncscope.__file__).parent / "tracers" / "hooks" / "methods.c")
in_c = pytest.mark.skipif(bool(_WHY), reason=_WHY)
