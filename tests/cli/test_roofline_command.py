import json

from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli.roofline import command
from syncscope.errors import UserError
from syncscope.model.trace import Event, Kind, Lane, Trace


def recorded(tmp_path, device):
    detail = json.dumps({"Input Dims": [[1000, 1000], [1000, 1000]], "Input type": ["float", "float"]})
    lane = Lane(1, 1)
    events = [
        Event(Kind.OP, "aten::mm", lane, 0, 100, external=4, detail=detail),
        Event(Kind.CALL, "cudaLaunchKernel", lane, 10, 10, correlation=1, external=4),
        Event(Kind.KERNEL, "gemm", Lane(0, 7, 0), 50, 4_000_000, correlation=1, external=4),
    ]
    path = tmp_path / "run.json.gz"
    kineto.save(Trace.of(events, devices=[{"name": device}]), path)
    return str(path)


def run(*arguments):
    return CliRunner().invoke(command, [*arguments], standalone_mode=False)


def test_given_ceilings_and_those_of_the_data_sheet(tmp_path):
    path = recorded(tmp_path, "NVIDIA A100-SXM4-80GB")
    done = run(path, "--bandwidth", "100", "--flops", "1")
    (line,) = (line for line in done.output.splitlines() if line.startswith("mm "))
    assert line.split() == ["mm", "1", "4.00", "3.0%", "50.0%", "arithmetic"]
    assert "50.0%" in done.output
    found = json.loads(run(path, "--format", "json").output)
    assert "data sheet of NVIDIA A100" in found["ceilings_from"]
    assert found["rows"][0]["bound"] == "memory"  # 1555 GB/s and 312 TFLOPS are both far away


def test_a_device_that_nobody_knows_needs_numbers(tmp_path):
    failed = run(recorded(tmp_path, "An Unknown Device"))
    assert isinstance(failed.exception, UserError)
    assert "--bandwidth" in failed.exception.hint
