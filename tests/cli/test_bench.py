"""`syncscope bench`: results side by side, and one real measurement."""

import importlib.util
import json
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from syncscope.bench import results
from syncscope.cli import commands
from syncscope.errors import UserError


def bench(*args):
    return CliRunner().invoke(commands, ["bench", *map(str, args)], standalone_mode=False)


def iteration(name):
    """What the process that measures makes of a name; that its errors come back is asked once, below."""
    pytest.importorskip("torch")
    from syncscope.bench.networks import of_file

    return of_file(name, "cpu", 2)


def row(device, ms, batch=4, **rest):
    return {"network": "resnet50", "device": device, "batch": batch, "pass": "train", "ms": ms, **rest}


@pytest.fixture
def saved(tmp_path):
    def save(*rows, name="rows.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"rows": rows}))
        return path

    return save


def test_a_published_comparison_of_two_cards_can_be_shown(saved):
    path = saved(row("rx560", 170), row("gtx960", 130), row("rx560", None, 64), row("gtx960", 694, 64))
    lines = bench("--read", path, "--format", "markdown").output.splitlines()
    assert "| resnet50 | 4 | 170 | 130 | 76% |  |  |  |" in lines
    assert "| resnet50 | 64 | - | 694 |  |  |  |  |" in lines


def test_the_first_device_is_compared_and_its_losses_too(saved):
    path = saved(
        row("ocl", 50, losses=[1.0, 0.5]), row("cuda", 25, losses=[1.0, 0.4]), row("ocl", 10, 8), row("cuda", 20, 8)
    )
    text = bench("--read", path).output
    assert "50%" in text
    assert "200%" in text
    assert "100% of the speed" in text  # the geometric mean of a half and two
    assert "differ by 2.5e-01" in text


def test_the_gate_is_a_share_of_the_second_devices_speed_or_of_an_earlier_run(saved):
    path = saved(row("ocl", 50), row("cuda", 40))
    assert bench("--read", path, "--gate", "0.7").return_value == 0
    assert bench("--read", path, "--gate", "0.9").return_value == 1
    alone, slower = saved(row("ocl", 50), name="new.json"), saved(row("ocl", 40), name="old.json")
    assert bench("--read", alone, "--against", slower, "--gate", "0.9").return_value == 1
    assert bench("--read", alone, "--against", slower, "--gate", "0.7").return_value == 0
    assert isinstance(bench("--read", alone, "--gate", "0.7").exception, UserError)


def test_what_binds_is_what_is_used_most():
    device = {"name": "a GPU", "flops": 1e12, "bandwidth": 1e11}
    found = results.Results(
        {"ocl": device, "cuda": {**device, "flops": 2e12}},
        [row("ocl", 10, flops=1e10, bytes=2e8, host_ms=1), row("cuda", 10, flops=1e8, bytes=1e7, host_ms=9)],
    )
    found.judge()
    assert found.rows[0]["reached"] == {
        "flops": 0.5,
        "memory": 0.2,
        "host": 0.1,
    }  # of the better of two names of one GPU
    assert [r["bound_by"] for r in found.rows] == ["flops", "host"]


def test_what_is_no_measurement_is_said(tmp_path):
    (tmp_path / "x.json").write_text("[]")
    for args in (("--read", tmp_path / "x.json"), ("--read", tmp_path / "none.json"), (), ("a.py:f", "--batch", "x")):
        assert isinstance(bench(*args).exception, UserError), args


def test_waiting_for_room_in_a_full_queue_is_no_work_of_the_host():
    torch = pytest.importorskip("torch")
    from syncscope.bench import measure

    pending, x = [], torch.zeros(1)

    def launch():
        x.add_(1)
        if len(pending) < 300:
            pending.append(None)
        else:
            time.sleep(1e-3)  # until the device has finished one

    def step():
        for _ in range(500):
            launch()

    def ready():
        return step

    _, enqueued = measure.timed(ready, pending.clear, 0.1)
    assert min(enqueued) > 200  # ms: two hundred waits for room
    assert measure.host_ms(ready, pending.clear, enqueued) < min(enqueued) / 2
    assert measure.host_ms(ready, pending.clear, [0.5]) <= 0.5  # nobody watched, and the queue was never full


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Rows of two functions, from one process: a network's step, and one that takes longer than there is time; and how often
    that was called."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("measured")
    (folder / "train.py").write_text(
        "import time, torch\n"
        "def step(device, batch):\n"
        "    model, x = torch.nn.Linear(8, 8, device=device), torch.ones(batch, 8, device=device)\n"
        "    return lambda: model(x).sum().backward()\n"
        "def long():\n"
        "    time.sleep(0.1)\n"
        f"    with open({str(folder / 'made')!r}, 'a') as file:\n"
        "        file.write('.')\n"
    )
    names = (f"{folder}/train.py:step", f"{folder}/train.py:long")
    made = bench(*names, "--device", "cpu", "--batch", "2,4", "--seconds", "0.05", "--format", "json")
    rows = json.loads(made.stdout)["rows"]
    assert [r["network"] for r in rows] == [name for name in names for _ in range(2)]
    return rows[:2], rows[2:], len((folder / "made").read_text())


def test_a_function_of_ones_own_is_measured_in_a_process_of_its_own(measured, tmp_path):
    rows, _, _ = measured
    assert [r["batch"] for r in rows] == [2, 4]
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    for r in rows:
        assert not [key for key in r if f"`rows.{key}`" not in page], "docs/json.md says what each key means"
        assert 0 < r["low"] <= r["ms"] <= r["high"]
        assert r["flops"] == 2 * 2 * r["batch"] * 8 * 8  # forward, and backward to the weight
        assert r["bound_by"] in ("flops", "memory")
    (tmp_path / "train.py").touch()
    failed = bench(f"{tmp_path}/train.py:none", "--device", "cpu", "--batch", "1").exception
    assert "no function" in str(failed)


def test_an_iteration_that_takes_all_the_time_is_made_no_oftener_than_it_must(measured):
    """One of counting, one of timing each operator's work, and the three that are timed."""
    _, rows, calls = measured
    assert [r["iterations"] for r in rows] == [3, 3]
    assert calls <= 2 * 6


def test_the_page_draws_batches_and_ratios(saved):
    curves = [
        row(device, ms * batch, batch, low=ms * batch * 0.9, high=ms * batch * 1.2)
        for device, ms in (("ocl", 10), ("cuda", 8))
        for batch in (1, 8, 64)
    ]
    odd = [{**row("ocl", 5), "network": "<img>"}]
    odd.append({**row("cuda", None), "network": "<img>", "error": "cannot allocate 9 MiB"})
    page = bench("--read", saved(*curves, *odd), "--format", "html").output
    tree = ET.fromstring(page[page.index("<body>") : page.index("</html>")])
    lines, bars = tree.findall(".//polyline"), tree.findall(".//rect")
    assert [len(line.get("points").split()) for line in lines] == [3, 3]
    heights = [[float(point.partition(",")[2]) for point in line.get("points").split()] for line in lines]
    assert all(ours < theirs for ours, theirs in zip(*heights, strict=True))  # slower is higher up
    assert heights[0] == sorted(heights[0], reverse=True)
    assert len(bars) == 3
    assert len({bar.get("width") for bar in bars}) == 1
    assert "&lt;img&gt; 4: on cuda cannot allocate 9 MiB" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_halves_are_rows_of_their_own(saved):
    path = saved(row("ocl", 50, dtype="float16"), row("ocl", 40), row("cuda", 10, dtype="float16"))
    lines = bench("--read", path, "--format", "markdown").output.splitlines()
    assert any(line.startswith("| resnet50, float16 | 4 | 50 | 10 | 20%") for line in lines)
    assert any(line.startswith("| resnet50, float32 | 4 | 40 |  |") for line in lines)


@pytest.mark.parametrize(
    ("name", "said"), [("Kind", "Kind is a class"), ("needy", "needy needs x, and is given nothing")]
)
def test_what_is_no_iteration_is_said(tmp_path, name, said):
    (tmp_path / "train.py").write_text("class Kind: ...\ndef needy(x, batch, y=1): ...\n")
    with pytest.raises(UserError) as caught:
        iteration(f"{tmp_path}/train.py:{name}")
    assert said in caught.value.message


def test_a_file_that_reads_arguments_is_told_where_that_belongs(tmp_path):
    reads = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument({})\nlr = p.parse_args().lr\ndef step(): ...\n"
    )
    (tmp_path / "asks.py").write_text(reads.format("'lr'"))
    with pytest.raises(UserError, match=r"asks\.py ends while it is imported") as caught:
        iteration(f"{tmp_path}/asks.py:step")
    assert "__main__" in caught.value.hint
    (tmp_path / "takes.py").write_text(reads.format("'--lr'"))  # what it would find without arguments
    iteration(f"{tmp_path}/takes.py:step")()


def test_without_torchvision_its_networks_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    made = bench("lstm", "resnet50", "--device", "cpu")
    assert made.exception.message.startswith("resnet50 is no network of ours, and torchvision, which may have it")
