"""What more than one test file needs."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("SYNCSCOPE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded traces and labelled sources, too large for the repository; tests that need them skip without them."""
    if not SHARED.is_dir():
        pytest.skip(f"no material at {SHARED}; set SYNCSCOPE_SHARED to the folder that holds traces/ and lint-truth/")
    return SHARED
