"""The cache: the same answers, sooner, and never a reason to fail."""

import os

import pytest
from linter.conftest import MASKS, READS

from syncscope.linter import engine


@pytest.fixture
def analysed(monkeypatch):
    """The paths that were really looked at."""
    seen = []
    real = engine.check

    def check(path, raw, config, named=False):
        seen.append(path)
        return real(path, raw, config, named)

    monkeypatch.setattr(engine, "check", check)
    return seen


def test_a_second_run_looks_at_nothing_and_says_the_same(door, analysed):
    door.write("train.py", READS)
    door.write("loss.py", MASKS)
    first = door("lint", "--format", "json")
    assert sorted(analysed) == ["loss.py", "train.py"]
    analysed.clear()
    assert door("lint", "--format", "json") == first
    assert analysed == []


def test_a_changed_file_is_looked_at_again(door, analysed):
    path = door.write("train.py", READS)
    door.write("loss.py", MASKS)
    door("lint")
    analysed.clear()
    path.write_text(READS + "\n")
    door("lint")
    assert analysed == ["train.py"]


def test_another_configuration_is_another_answer(door, analysed):
    door.write("train.py", READS)
    door("lint")
    assert door("lint", "--select", "nonzero").lines == []
    assert door("lint").lines == [("train.py", 11, "host-read")]
    assert len(analysed) >= 2


def test_a_changed_import_is_looked_at_again(door, analysed):
    door.write("losses.py", "import torch\n\n\ndef loss(a, b):\n    return torch.dist(a.cuda(), b.cuda())\n")
    loop = "def train(loader):\n    for a, b in loader:\n        print(loss(a, b).item())\n"
    door.write("train.py", f"import torch\nfrom losses import loss\n\n\n{loop}")
    assert door("lint").lines == [("train.py", 7, "host-read")]
    door.write("losses.py", "import torch\n\n\ndef loss(a, b):\n    return torch.dist(a.cpu(), b.cpu()).numpy()\n")
    analysed.clear()
    assert ("train.py", 7, "host-read") not in door("lint").lines
    assert "train.py" in analysed


def test_no_cache_reads_and_writes_none(door, analysed):
    door.write("train.py", READS)
    door("lint", "--no-cache")
    assert not os.path.exists(os.environ["SYNCSCOPE_CACHE_DIR"])
    door("lint")
    analysed.clear()
    door("lint", "--no-cache")
    assert analysed == ["train.py"]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign", "folder"])
def test_a_damaged_cache_does_no_harm(door, analysed, damage):
    door.write("train.py", READS)
    before = door("lint")
    folder = os.path.join(os.environ["SYNCSCOPE_CACHE_DIR"], "lint")
    (name,) = os.listdir(folder)
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        raw = file.read()
    bad = {
        "empty": b"",
        "cut": raw[:-7],
        "flipped": raw[:60] + bytes([raw[60] ^ 1]) + raw[61:],
        "foreign": b"\x00" * 99,
    }
    if damage == "folder":
        os.unlink(path)
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(bad[damage])
    analysed.clear()
    assert door("lint") == before
    assert analysed == ["train.py"]


def test_a_cache_that_cannot_be_written_does_no_harm(door, monkeypatch):
    door.write("train.py", READS)
    door.write("file", "")
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(door.folder / "file" / "below"))
    assert door("lint").lines == [("train.py", 11, "host-read")]


def test_the_users_own_rules_are_part_of_the_question(door, analysed):
    from linter.test_fixing import own_rule

    path = door.write("loss.py", MASKS)
    own_rule(door, "'x'")
    assert "seen" in door("lint", "loss.py").out
    rule = door.folder / "own" / "nonzero.py"
    rule.write_text(rule.read_text().replace('"seen"', '"perceived"'))
    assert "has changed since you trusted it" in door("lint", "loss.py").err
    door("trust")
    assert "perceived" in door("lint", "loss.py").out
    assert path.read_text() == MASKS


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are those of POSIX")
@pytest.mark.parametrize("who", ["others may write to it", "it belongs to another user"])
def test_a_cache_that_others_may_have_written_is_not_believed(door, analysed, monkeypatch, who):
    door.write("train.py", READS)
    door("lint")
    folder = os.path.join(os.environ["SYNCSCOPE_CACHE_DIR"], "lint")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    forge(folder)
    assert door("lint").lines == [], "the forged entry is in the form of a true one"
    if who.startswith("others"):
        os.chmod(folder, 0o777)
    else:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
    analysed.clear()
    ran = door("lint")
    assert ran.lines == [("train.py", 11, "host-read")]
    assert analysed == ["train.py"]
    assert ran.err.count(f"the cache in {folder} is not used: {who}") == 1
    assert "is not used" not in door("lint", "--no-cache").err


def test_an_entry_of_another_user_in_a_folder_of_ones_own_is_not_believed(door, analysed, monkeypatch):
    door.write("train.py", READS)
    door("lint")
    folder = os.path.join(os.environ["SYNCSCOPE_CACHE_DIR"], "lint")
    forge(folder)
    (name,) = os.listdir(folder)
    real = os.stat

    def stat(path, *rest, **more):
        told = real(path, *rest, **more)
        return os.stat_result((*told[:4], told.st_uid + 1, *told[5:10])) if os.fspath(path).endswith(name) else told

    monkeypatch.setattr(os, "stat", stat)
    assert door("lint").lines == [("train.py", 11, "host-read")]


def forge(folder: str) -> None:
    """Make every answer of the cache in this folder say that there is nothing to find."""
    import msgspec

    from syncscope.linter.cache import Kept, digest
    from syncscope.linter.checked import Checked

    (name,) = os.listdir(folder)
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        kept = msgspec.msgpack.decode(file.read()[32:], type=Kept)
    for at, entry in kept.entries.items():
        entry.answer = msgspec.Raw(msgspec.msgpack.encode(Checked(at)))
    body = msgspec.msgpack.encode(kept)
    with open(path, "wb") as file:
        file.write(digest(body).encode() + body)


def test_a_function_that_a_step_elsewhere_begins_to_call_is_looked_at_again(door, analysed):
    read = "import torch\n\n\ndef size_of(x: torch.Tensor):\n    return x * int(x.sum())\n"
    model = "import torch\nfrom .sizes import size_of\n\n\nclass Net(torch.nn.Module):\n"
    model += "    def forward(self, x):\n        return x\n"
    door.write("net/__init__.py", "")
    door.write("net/sizes.py", read)
    door.write("net/model.py", model)
    assert door("lint").lines == []
    analysed.clear()
    door.write("net/model.py", model.replace("return x", "return size_of(x)"))
    assert door("lint").lines == [("net/sizes.py", 5, "host-read")]
    assert sorted(analysed) == ["net/model.py", "net/sizes.py"]
    analysed.clear()
    door.write("net/model.py", model.replace("return x", "return size_of(x) + 1"))
    assert door("lint").lines == [("net/sizes.py", 5, "host-read")]
    assert analysed == ["net/model.py"]


def test_a_changed_caller_in_another_file_is_heard(door):
    door.write("pyproject.toml", "")
    door.write("rates.py", "import torch\n\n\ndef number(t0):\n    return float(t0)\n")
    net = "import torch\n{}\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return {}\n"
    there = ("rates.py", 5, "host-read")
    door.write("net.py", net.format("", "x"))
    assert there not in door("lint", "--all").lines
    path = door.write("net.py", net.format("from rates import number", "x * number(x.sum())"))
    assert there in door("lint", "--all").lines, "a file that imports it is new"
    path.write_text(net.format("from rates import number", "x * number(x.shape[0])"))
    assert there not in door("lint", "--all").lines, "it passes something else"
    assert "imports" not in door("lint", "--all", "rates.py").err


def test_what_another_file_says_of_the_project_is_asked_again(door, analysed):
    door.write("pyproject.toml", "[project]\nname = 'it'\n")
    loop = "    for x in torch.utils.data.DataLoader(rows):\n        loss = model(x.cuda()).mean()\n"
    steps = "        loss.backward()\n        optimizer.step()\n"
    door.write("train.py", f"import torch\n\n\ndef train(model, optimizer, rows):\n{loop}{steps}")
    door("lint")
    analysed.clear()
    door("lint")
    assert analysed == []
    door.write("batch.py", "import torch\n\n\nclass Batch:\n    def to(self, device):\n        return self\n")
    door("lint")
    assert "train.py" in analysed


def test_a_file_that_does_not_name_torch_is_read_where_it_is_passed_tensors(door):
    door.write("pyproject.toml", "")
    door.write("rates.py", "def number(t0):\n    return float(t0)\n")
    door.write("words.py", "def number(t0):\n    return float(t0)\n")
    net = "import torch\n{}\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return {}\n"
    there = ("rates.py", 2, "host-read")
    path = door.write("net.py", net.format("from rates import number", "x * number(x.sum())"))
    for cached in ((), (), ("--no-cache",)):
        ran = door("lint", "--all", *cached)
        assert there in ran.lines
        assert "not read: 1 file that names neither torch nor OpenCL" in ran.out + ran.err
    path.write_text(net.format("", "x"))
    ran = door("lint", "--all")
    assert there not in ran.lines
    assert "not read: 2 files that name neither torch nor OpenCL" in ran.out + ran.err
