"""However the path of a file is written, and wherever from: the same findings, configuration and baseline."""

import json
import os

import pytest

FILES = {
    "pyproject.toml": """
        [tool.syncscope.lint]
        per-file-ignores = {"pkg/losses/quiet.py" = ["ALL"]}
        exclude = ["pkg/losses/old"]
    """,
    "train.py": """
        import torch
        from pkg.losses.margin import Margin

        def train(model, loader, optimizer):
            loss_of = Margin()
            for batch in loader:
                loss = loss_of(model(batch.cuda()), batch.cuda())
                loss.backward()
                optimizer.step()
    """,
    "pkg/__init__.py": "",
    "pkg/base.py": """
        import torch

        def distances(x):
            return torch.cdist(x, x)
    """,
    "pkg/losses/__init__.py": "",
    "pkg/losses/margin.py": """
        import torch
        from ..base import distances
        from pkg.base import distances as others
        from .near import nearest

        class Margin(torch.nn.Module):
            def forward(self, x, y):
                apart = distances(x)
                if apart.sum() != 0:
                    apart = apart + 1
                if others(y).sum() != 0:
                    apart = apart - 1
                return nearest(apart)
    """,
    "pkg/losses/near.py": """
        import torch

        def nearest(d: torch.Tensor):
            if (d > 0).any():
                d = d + 1
            return d.min(1).values.sum()
    """,
    "pkg/losses/tests/near.py": "def f(x):\n    for _ in range(3):\n        x.backward()\n        print(x.cuda().item())\n",
    "pkg/losses/quiet.py": "import torch\ndef forward(x: torch.Tensor):\n    return x.item()\n",
    "pkg/losses/old/x.py": "import torch\ndef forward(x: torch.Tensor):\n    return x.item()\n",
}
WAYS = {  # where from, and what is written there
    "from the root": (".", "pkg/losses"),
    "inside": ("pkg/losses", "."),
    "from beside": ("pkg", "losses"),
    "absolute": (".", "{root}/pkg/losses"),
    "up and down": ("pkg", "../pkg/losses/../losses"),
    "through a link": ("..", "link/losses"),
    "where the link leads": ("../link/losses", "."),
    "its files, one by one": ("pkg/losses", "margin.py near.py quiet.py tests/near.py"),
    "its files from a folder below": ("pkg/losses/tests", "../margin.py ../near.py ../quiet.py near.py"),
    "links to its files": ("../files", "margin.py near.py"),
}


@pytest.fixture
def package(door):
    for name, code in FILES.items():
        door.write(name, code)
    (door.folder.parent / "link").symlink_to(door.folder / "pkg", target_is_directory=True)
    (door.folder.parent / "files").mkdir()
    for name in ("margin.py", "near.py"):
        (door.folder.parent / "files" / name).symlink_to(door.folder / "pkg" / "losses" / name)
    return door


def findings(door, monkeypatch, way, *options):
    """Each finding as (file, line, rule, message, why it is hot, its fix), whatever its path is called."""
    folder, written = WAYS[way]
    monkeypatch.chdir(door.folder / folder)
    ran = door("lint", "--format", "json", *options, *written.format(root=door.folder).split())
    return sorted(
        (os.path.basename(f["path"]), f["line"], f["rule"], f["message"], str(f.get("why")), str(f.get("fix")))
        for f in json.loads(ran.out)
    )


@pytest.mark.parametrize("way", WAYS)
def test_the_same_findings_however_the_path_is_written(package, monkeypatch, way):
    expected = findings(package, monkeypatch, "from the root")
    assert [(file, line) for file, line, *_ in expected] == [("margin.py", 10), ("margin.py", 12), ("near.py", 5)]
    assert findings(package, monkeypatch, way) == expected, "with a cache that was asked in another way"
    assert findings(package, monkeypatch, way, "--no-cache") == expected


@pytest.mark.parametrize("way", WAYS)
def test_what_a_baseline_holds_is_known_however_the_path_is_written(package, monkeypatch, way):
    monkeypatch.chdir(package.folder)
    assert package("lint", "--write-baseline", "known.json", "pkg").code == 0
    assert findings(package, monkeypatch, way, "--baseline", str(package.folder / "known.json")) == []


def shown(ran):
    """Path and line of each finding, as they are shown."""
    return [tuple(line.split(":")[:2]) for line in ran.out.splitlines()]


def test_what_is_shown_is_as_it_was_written(package, monkeypatch):
    monkeypatch.chdir(package.folder.parent / "link" / "losses")
    for written, path in (("near.py", "near.py"), ("../losses/near.py", "../losses/near.py"), (".", "near.py")):
        assert (path, "5") in shown(package("lint", "--format", "concise", "-q", written)), written


def test_a_name_on_standard_input_counts_as_the_path(package, monkeypatch):
    code = (package.folder / "pkg/losses/margin.py").read_text()
    for folder, name in ((".", "pkg/losses/margin.py"), ("pkg/losses", "margin.py"), ("../link", "losses/margin.py")):
        monkeypatch.chdir(package.folder / folder)
        ran = package("lint", "-", "--format", "concise", "--stdin-filename", name, stdin=code)
        assert sorted(shown(ran)) == [(name, "10"), (name, "12")]


@pytest.mark.parametrize("mark", ["setup.py", None])
def test_what_a_script_imports_of_its_project_is_found_from_anywhere(door, monkeypatch, mark):
    door.write("repo/lib/__init__.py", "")
    door.write("repo/lib/base.py", FILES["pkg/base.py"])
    door.write(
        "repo/scripts/step.py", FILES["pkg/losses/margin.py"].replace("..base", "lib.base").replace("pkg.", "lib.")
    )
    door.write("lib/base.py", "import torch\n\ndef distances(x):\n    return 3\n")  # another's, where somebody stands
    if mark:
        door.write(f"repo/{mark}", "")
    for folder, written in (
        ("repo", "scripts"),
        ("repo/scripts", "step.py"),
        (".", "repo"),
        ("/", str(door.folder / "repo")),
    ):
        monkeypatch.chdir(door.folder / folder)
        ran = door("lint", "--no-cache", "--format", "concise", written)
        assert sorted(line for _, line in shown(ran)) == ["10", "12"], folder
