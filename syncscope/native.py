"""What is written in C: built with the package where there was a compiler, else on first use, and kept in the user's cache."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import subprocess
import sysconfig
import tempfile
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from syncscope import files
from syncscope.errors import UserError


def built(source: Path, *flags: str) -> Path:
    """The library of a C file, and of the headers beside it, which are its parts: beside it where it was built with the package
    and is no older, else in the user's cache, under a name that is the sources' own hash.

    Raises:
        OSError: there is no compiler, or it fails: in one line, why.
        UserError: the cache cannot be written.
    """
    beside = source.with_name(f"_{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}")
    parts = [source, *sorted(source.parent.glob("*.h"))]
    fresh = beside.exists() and beside.stat().st_mtime + 2 >= max(part.stat().st_mtime for part in parts)
    if fresh:  # an editable install does not rebuild it
        return beside
    platform = sysconfig.get_config_var("SOABI") or sysconfig.get_platform()
    digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts) + platform.encode()).hexdigest()[:16]
    target = files.cache_folder("native") / f"{source.stem}-{digest}.so"
    files.private(target.parent)  # what lies there is run
    if files.foreign(target, 0):
        target.unlink()
    if not target.exists():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, target.name)
            compiler = os.environ.get("CC", "cc")
            command = [compiler, "-O2", "-shared", "-fPIC", "-pthread", *flags, str(source), "-o", str(made)]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except FileNotFoundError:
                raise OSError(f"no C compiler: `{compiler}` is not here") from None
            except subprocess.CalledProcessError as error:
                said = (line.partition("error: ")[2] for line in error.stderr.splitlines() if "error: " in line)
                why = next(said, f"`{compiler}` does not compile {source.name}")
                raise OSError(why.removeprefix("#error ").strip('"')) from None
            files.write(target, made.read_bytes())
    return target


def _module(source: Path) -> Path:
    return built(source, f"-I{sysconfig.get_path('include')}")


def why_not(source: Path) -> str:
    """Why there is no Python module of a C file, in words; "" where there is."""
    try:
        _module(source)
    except (OSError, UserError) as error:
        return str(error)
    return ""


@functools.cache
def module(source: Path) -> Any:
    """The Python module that a C file is, or None where it cannot be compiled."""
    name = f"_{source.stem}"
    try:
        path = _module(source)
    except (OSError, UserError):
        return None
    spec = importlib.util.spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
