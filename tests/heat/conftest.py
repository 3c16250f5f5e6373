from pathlib import Path

import pytest
from heat.called import MODEL, PARTS


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    folder.mkdir()
    for name, text in {"__init__": "", "model": MODEL, "parts": PARTS}.items():
        (folder / f"{name}.py").write_text(text)
    return folder
