"""What a user installs: a wheel and an archive of the sources, into an environment of its own, with and without a compiler."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LARGEST = 4 << 20  # bytes of a wheel
SETUPTOOLS = int(version("setuptools").split(".")[0])
pytestmark = pytest.mark.skipif(SETUPTOOLS < 77, reason="needs setuptools >= 77: pip install '.[dev]'")


def run(*command, **keywords):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **keywords)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The sources as they would be published, built of a copy: what lies about in the checkout is in none."""
    copy, built = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    run("git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(copy))
    for changed in run("git", "ls-files", "--modified", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / changed).is_file():
            (copy / changed).parent.mkdir(parents=True, exist_ok=True)
            (copy / changed).write_bytes((ROOT / changed).read_bytes())
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})"
    run(sys.executable, "-c", build, cwd=copy)
    return next(built.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(archive):
    """The wheel of that archive, built without a compiler."""
    pip = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    folder = archive.parent / "without a compiler"
    run(sys.executable, *pip, "-w", str(folder), str(archive), env={**os.environ, "CC": "false", "CXX": "false"})
    return next(folder.glob("*.whl"))


def test_the_archive_has_what_is_built_and_no_half_of_the_tests(archive):
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "syncscope/py.typed"} <= names
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "syncscope").rglob("*")
        if path.suffix in {".py", ".c", ".h", ".cl"}
    }
    assert sources <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs", ".venv"))]


def test_the_wheel_holds_the_package_alone(wheel):
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = opened.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {name.split("/")[0] for name in names} == {"syncscope", f"syncscope-{version('syncscope')}.dist-info"}
    assert "License-Expression: MIT" in metadata
    assert not [
        name for name in names if Path(name).name.startswith("test_") and not name.endswith("cli/test_rules.py")
    ]
    assert not [name for name in names if name.endswith(".so")], "it was to be built without a compiler"
    assert wheel.stat().st_size < LARGEST


def test_it_works_where_no_compiler_is_and_nothing_of_the_checkout(wheel, tmp_path):
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    python, site = home / "bin" / "python", Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    install = ("install", "--quiet", "--no-deps", "--no-compile")
    run(sys.executable, "-m", "pip", "--python", str(python), *install, str(wheel))
    depends = sysconfig.get_path("purelib")  # what it needs of others, without an editable install of ours
    (site / "depends.pth").write_text(
        f"{depends}\n" + "".join(f"{path}\n" for path in sys.path if "site-packages" in path)
    )
    ready = run(str(home / "bin" / "syncscope"), "ci", "github", cwd=tmp_path, env={"PATH": "", "HOME": str(tmp_path)})
    assert "syncscope lint --format github" in ready
    (tmp_path / "train.py").write_text(
        "import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.exp()[x > 0].item()\n"
    )
    alone = {"PATH": "", "HOME": str(tmp_path)}
    where = run(str(python), "-c", "import syncscope; print(syncscope.__file__)", cwd=tmp_path, env=alone)
    assert Path(where.strip()).is_relative_to(site)
    said = run(str(home / "bin" / "syncscope"), "lint", "--exit-zero", "train.py", cwd=tmp_path, env=alone)
    assert "train.py:5:12: warning:" in said
    assert (
        run(str(home / "bin" / "syncscope"), "--version", cwd=tmp_path, env=alone)
        .strip()
        .endswith(version("syncscope"))
    )
