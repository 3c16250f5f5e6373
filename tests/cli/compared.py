"""Two drawn recordings, and what `syncscope diff` says of them."""

import sys
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli.diff import command

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn import Device

STEP = [("launch", 0, 5_000_000), ("read", 57, 0), ("work", 4_000_000)]
FIXED = [STEP[0], STEP[2]]
TWICE = [*STEP, ("read", 57, 0), ("read", 60, 0)]


def recorded(tmp_path):
    paths = [tmp_path / "before.json.gz", tmp_path / "after.json"]
    for path, step in zip(paths, (STEP, FIXED), strict=True):
        kineto.save(Device().run([step] * 6)[0], path)
    return [str(path) for path in paths]


def compared(tmp_path, before, after, *options):
    paths = [str(tmp_path / name) for name in ("before.json.gz", "after.json.gz")]
    for path, trace in zip(paths, (before, after), strict=True):
        kineto.save(trace, path)
    done = CliRunner().invoke(command, [*paths, *options], standalone_mode=False)
    assert done.exception is None, done.output
    return done.return_value, " ".join(done.output.split())


def on(device, trace):
    return replace(trace, meta={**trace.meta, "devices": [{"id": 0, "name": device}]})


def gated(tmp_path, before, after, *limits):
    """The exit code, and what is said of limits, but of those that hold."""
    paths = [str(tmp_path / name) for name in ("one.json.gz", "two.json.gz")]
    for path, trace in zip(paths, (before, after), strict=True):
        kineto.save(trace, path)
    done = CliRunner().invoke(command, [*paths, *limits], standalone_mode=False)
    assert done.exception is None, done.output
    told = done.stderr.splitlines(keepends=True)
    return done.return_value, "".join(line for line in told if " holds: " not in line)
