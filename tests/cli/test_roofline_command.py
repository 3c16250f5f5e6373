import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli.roofline import command
from syncscope.errors import UserError
from syncscope.model.trace import Event, Kind, Lane, Trace


def recorded(tmp_path, device, shapes=True, dtype="float", kernel="gemm", ns=4_000_000):
    told = {"Input Dims": [[1000, 1000], [1000, 1000]], "Input type": [dtype, dtype]}
    detail = json.dumps(told) if shapes else ""
    lane = Lane(1, 1)
    events = [
        Event(Kind.OP, "aten::mm", lane, 0, 100, external=4, detail=detail),
        Event(Kind.CALL, "cudaLaunchKernel", lane, 10, 10, correlation=1, external=4),
        Event(Kind.KERNEL, kernel, Lane(0, 7, 0), 50, ns, correlation=1, external=4),
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


@pytest.mark.parametrize(("dtype", "tflops"), [("float", 67), ("c10::Half", 989), ("c10::BFloat16", 989)])
def test_an_operator_is_held_against_the_data_sheets_figure_for_its_dtype(tmp_path, dtype, tflops):
    path = recorded(tmp_path, "NVIDIA H200", dtype=dtype)
    found = json.loads(run(path, "--format", "json").output)
    for row in (found["rows"][0], found["total"]):
        assert row["flops_share"] == pytest.approx(2e9 / 4e-3 / (tflops * 1e12))
    assert run(path).output.startswith("ceilings 4,800 GB/s, 67 TFLOPS, 495 in TF32, 989 in 16 bits")
    given = json.loads(run(path, "--flops", "100", "--format", "json").output)
    assert given["rows"][0]["flops_share"] == pytest.approx(2e9 / 4e-3 / 100e12)


TF32 = (
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x256_32x3_tn_align4>(cutlass_80_tensorop_s1688gemm)",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1",
    "conv_forward_tf32",
)
FLOAT32 = ("ampere_sgemm_128x64_tn", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8", "volta_sgemm_64x64_nn")


@pytest.mark.parametrize(
    ("kernel", "arithmetic", "tflops"),
    [
        *((name, "TF32", 495) for name in TF32),
        *((name, "float32", 67) for name in FLOAT32),
        ("conv_forward_tf32x3", "float32 by three products in TF32", 165),
        ("cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_128x2_nn_align8", "16 bits", 989),
    ],
)
def test_products_in_32_bits_are_held_against_the_arithmetic_that_their_kernel_is_called_by(
    tmp_path, kernel, arithmetic, tflops
):
    found = json.loads(run(recorded(tmp_path, "NVIDIA H200", kernel=kernel), "--format", "json").output)
    assert found["rows"][0]["arithmetic"] == arithmetic
    assert found["rows"][0]["flops_share"] == pytest.approx(2e9 / 4e-3 / (tflops * 1e12))


def test_what_reaches_more_than_all_is_told_with_its_reason(tmp_path):
    fast = {"ns": 20_000}  # 100 TFLOPS
    said = run(recorded(tmp_path, "NVIDIA H200", kernel=TF32[0], **fast)).output
    assert "20.2%  TF32" in said
    assert "above 100%" not in said
    told = {
        "cudnn::winograd_nonfused::winogradForwardOutput4x4": "Winograd's way takes fewer operations than are counted",
        "gemm": "no reason is recorded: the ceiling is too low (--flops), or fewer operations are needed than are counted",
    }
    for kernel, why in told.items():
        said = " ".join(run(recorded(tmp_path, "NVIDIA H200", kernel=kernel, **fast)).output.split())
        assert f"above 100%: {why}" in said
    said = run(recorded(tmp_path, "Tesla V100", kernel=TF32[0], **fast), "--format", "json").output
    assert json.loads(said)["rows"][0]["why"] == "it multiplies in TF32, of which no ceiling is known"
    assert json.loads(said)["total"]["why"] == "operators in it reach more than all, for reasons of their own"


def test_a_recording_without_shapes_is_told_how_to_get_them(tmp_path):
    plain = run(recorded(tmp_path, "NVIDIA A100-SXM4-80GB", shapes=False)).output
    assert "the recording has no shapes: record with `syncscope run --shapes`" in plain
    assert "no shapes" not in run(recorded(tmp_path, "NVIDIA A100-SXM4-80GB")).output


def test_a_device_that_nobody_knows_needs_numbers(tmp_path):
    failed = run(recorded(tmp_path, "An Unknown Device"))
    assert isinstance(failed.exception, UserError)
    assert "--bandwidth" in failed.exception.hint


@pytest.mark.slow
def test_a_recording_of_the_sample_on_our_device_is_known_whole(tmp_path):
    """Twelve convolutions whose operations follow from the network, forward and backward, in each step."""
    pytest.importorskip("torch")
    pytest.importorskip("pyopencl")
    pytest.importorskip("sklearn")
    sample = Path(__file__).parents[2] / "samples" / "segmentation.py"
    options = ["--device=ocl", "--size=16", "--batch=2", "--steps=3", "--warmup=1", f"--trace={tmp_path}", "--shapes"]
    subprocess.run(
        [sys.executable, sample, *options], check=True
    )  # the device comes before the first backward of a process
    (path,) = tmp_path.rglob("*.json.gz")
    done = run(str(path), "--bandwidth", "20", "--flops", "0.05")
    assert "convolution_overrideable" in done.output
    assert "step 2" in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    found = json.loads(run(str(path), "--bandwidth", "20", "--flops", "0.05", "--format", "json").output)
    assert found["known"] > 0.95
    tap = 2 * (2 * 16 * 16) * 9  # two operations, for each pixel of the batch and place in a window
    forward = tap * (3 * 10 + 11 * 10 * 10)
    expected = 3 * forward - tap * 3 * 10  # nobody wants the gradient of the image
    assert len(found["steps"]) == 3
    for step in found["steps"]:
        assert step["flops"] == expected
        assert step["bytes"] > 0
    convolution = next(row for row in found["rows"] if row["op"] == "aten::convolution_overrideable")
    assert "conv_forward" in [kernel for kernel, _ in convolution["kernels"]]


def test_a_recording_of_which_a_part_is_missing_is_told_and_no_success(tmp_path):
    path = recorded(tmp_path, "NVIDIA A100-SXM4-80GB")
    whole = kineto.read(path)
    events = [
        *whole,
        *(Event(Kind.CALL, "cudaLaunchKernel", Lane(1, 1), 200 + 20 * n, 10, correlation=9 + n) for n in range(40)),
    ]
    kineto.save(Trace.of(events, **whole.meta), path)
    for more in ([], ["--format", "json"]):
        done = run(path, *more)
        assert done.return_value == 2
        assert "not all of the work is here: of 41 launches 40 have no work of the device" in done.stderr
    assert run(recorded(tmp_path, "NVIDIA A100-SXM4-80GB")).return_value == 0
