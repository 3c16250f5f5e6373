"""What more than one test file needs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["kernels.counts"]

# Two workers with two threads each would wait for one another in every small operator.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SHARED = Path(os.environ.get("SYNCSCOPE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded traces and labelled sources, too large for the repository; tests that need them skip without them."""
    if not SHARED.is_dir():
        pytest.skip(f"no material at {SHARED}; set SYNCSCOPE_SHARED to the folder that holds traces/ and lint-truth/")
    return SHARED


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files anew instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a file in tests/golden; `pytest --golden` writes it."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--golden"):
            path.write_text(text)
        assert text == path.read_text()

    return compare
