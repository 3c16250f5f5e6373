"""How the device comes up, and what the user reads when it cannot."""

import math
import os
import sys
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
import torch
import warm

import syncscope.kernels  # noqa: F401 - registers the device
from syncscope.errors import UserError
from syncscope.kernels import device, pocl_cpu, pocl_header, programs, register, selftest
from syncscope.tracers.sources.opencl import OpenCL


def test_a_wrong_wish_lists_what_there_is(forked):
    code = """
from syncscope.errors import UserError
try:
    import syncscope.kernels
except UserError as error:
    print(error)
"""
    env = {**os.environ, "SYNCSCOPE_OCL_DEVICE": "no such thing"}
    done = forked("-c", code, env=env)
    assert "SYNCSCOPE_OCL_DEVICE='no such thing' names no OpenCL device" in done.stdout
    assert f"0:0 is {device.devices()['0:0'].name.strip()}" in done.stdout


def test_a_wish_may_be_part_of_a_name_or_numbers():
    assert device.choose("0:0") == device.devices()["0:0"]
    assert device.choose(device.device.name[2:8].upper()) == device.device
    with pytest.raises(UserError, match="7:7"):
        device.choose("7:7")


@pytest.mark.parametrize("there", [True, False])
def test_a_gpu_whose_driver_no_file_names(tmp_path, there, forked):
    """On a machine whose NVIDIA driver is visible, and OpenCL does not list it."""
    if any("NVIDIA" in one.platform.name for one in device.devices().values()):
        pytest.skip("OpenCL knows this GPU")
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    cards = tmp_path / ("gpus" if there else "none")
    setup = f"import pathlib, syncscope.opencl_driver as d; d.CARDS = pathlib.Path({str(cards)!r})"
    env = {name: value for name, value in os.environ.items() if name != device.ENV}
    use = "import syncscope.kernels; sys.argv[1:] = ['doctor']; import syncscope.__main__"
    done = forked("-c", f"import sys; {setup}; {use}", env=env)
    for said in (done.stdout, done.stderr):  # by the doctor, by the device
        assert "Traceback" not in said
        assert ("echo libnvidia-opencl.so.1 | sudo tee /etc/OpenCL/vendors/nvidia.icd" in said) == there
        assert ("there is an NVIDIA GPU, and no OpenCL platform of it" in said) == there


def test_a_gpu_whose_driver_no_file_names_where_there_is_no_other(monkeypatch, tmp_path):
    def none():
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    (tmp_path / "0000:01:00.0").mkdir()
    monkeypatch.setattr("syncscope.opencl_driver.CARDS", tmp_path)
    monkeypatch.setattr(cl, "get_platforms", none)
    with pytest.raises(UserError, match="there is an NVIDIA GPU, and no OpenCL platform of it") as caught:
        device.devices()
    assert "libnvidia-opencl.so.1" in caught.value.hint
    assert [item.hint for item in OpenCL.describe() if item.what == "OpenCL"] == [caught.value.hint]


@pytest.mark.parametrize("refused", [2, 9])
def test_where_other_programs_have_all_the_memory_it_is_asked_for_again(monkeypatch, refused):
    pauses, plain, tries, code = [], cl.Context, [], cl.status_code.OUT_OF_HOST_MEMORY  # as NVIDIA's driver says

    def context(devices):
        tries.append(devices)
        if len(tries) <= refused:
            raise cl.RuntimeError(cl._cl._ErrorRecord("Context", code, ""))
        return plain(devices)

    monkeypatch.setattr(device, "sleep", pauses.append)
    monkeypatch.setattr(cl, "Context", context)
    if refused < len(device.PAUSES):
        assert device.opened(device.device).devices == [device.device]
        assert len(pauses) == refused
    else:
        with pytest.raises(
            UserError, match=r"no context on .*OUT_OF_HOST_MEMORY.*\n hint: the device's memory is full"
        ):
            device.opened(device.device)


def test_a_torch_that_is_too_old_is_told_which_one_is_needed(monkeypatch):
    monkeypatch.delattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend")
    with pytest.raises(UserError, match="cannot take a device written in Python") as caught:
        register.check()
    assert "torch 2.10 or later" in caught.value.hint


def test_another_backend_in_the_same_place(monkeypatch):
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "npu")
    with pytest.raises(UserError, match="another PyTorch backend, 'npu'"):
        register.check()


def test_without_a_platform_the_error_names_what_to_install(monkeypatch, tmp_path):
    def none():
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr("syncscope.opencl_driver.CARDS", tmp_path)  # no GPU of NVIDIA's
    monkeypatch.setattr(cl, "get_platforms", none)
    with pytest.raises(UserError, match="no OpenCL platform") as caught:
        device.devices()
    assert "pocl-binary-distribution" in caught.value.hint


@pytest.mark.parametrize("use", [lambda: torch.zeros(2, device="ocl:1"), lambda: torch.ocl.set_device(1)])
def test_a_second_device_does_not_exist(use):
    with pytest.raises(UserError, match="one ocl device"):
        use()


def test_tensors_of_two_devices_do_not_mix():
    here, there = torch.ones(2, 2), torch.ones(2, 2, device="ocl")
    for mix in (
        lambda: here @ there,
        lambda: there @ here,
        lambda: there + here,
        lambda: torch.cat([there, here]).sort(),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            mix()
    assert (there[torch.tensor([1])] + torch.tensor(2.0)).tolist() == [[3, 3]]  # these may


def fake(kind, version, name="chip"):
    return SimpleNamespace(type=kind, platform=SimpleNamespace(version=version, name="some platform"), name=name)


def test_a_gpu_comes_first_then_the_systems_pocl_then_the_wheels(monkeypatch):
    monkeypatch.setattr(device.importlib.metadata, "version", lambda package: "3.0")
    gpu = fake(cl.device_type.GPU, "OpenCL 3.0 CUDA")
    intel = fake(cl.device_type.CPU, "OpenCL 3.0 LINUX")
    wheel = fake(cl.device_type.CPU, "OpenCL 3.0 PoCL 3.0-rc2  Linux")
    old = fake(cl.device_type.CPU, "OpenCL 3.0 PoCL 3.1+debian  Linux")
    new = fake(cl.device_type.CPU, "OpenCL 3.0 PoCL 5.0  Linux")
    assert sorted([wheel, intel, old, new, gpu], key=device._rank) == [gpu, new, old, intel, wheel]


def test_a_name_is_only_given_where_pocl_has_none():
    assert pocl_cpu.name_unknown(device.device) is None  # it has one by now


WIDEST = """
import numpy as np, pyopencl as cl
from syncscope.kernels.device import context
queue, values = cl.CommandQueue(context), np.arange(16, dtype=np.float32)
program = cl.Program(context, "kernel void powers(global float *a) { vstore16(exp2(vload16(0, a)), 0, a); }").build()
buffer = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
program.powers(queue, (1,), None, buffer)
cl.enqueue_copy(queue, values, buffer)
assert np.allclose(values, 2.0 ** np.arange(16)), values
"""


def test_vectors_are_as_wide_in_a_kernel_as_in_the_drivers_built_ins(forked):
    """An old LLVM takes a Zen 4 for a CPU without AVX-512: this crashed."""
    done = forked("-c", WIDEST)
    assert done.returncode == 0, done.stderr


BROKEN = """
import sys, syncscope.kernels
from syncscope.kernels import programs, selftest
plain = programs.build
def build(source, name, *types):
    return plain(source.replace("alpha * ", "alpha * (T)1.5 * "), name, *types)
programs.build = build
first = next(selftest._cases())
selftest._cases = lambda: iter([first])
sys.exit(selftest.main())
"""


def test_the_self_test_passes_once_and_is_remembered(tmp_path, monkeypatch):
    monkeypatch.delenv(selftest.SWITCH, raising=False)
    ran = tmp_path / "ran"
    note = (sys.executable, "-c", f"open({str(ran)!r}, 'a').write('x')")
    selftest.require(note, tmp_path)
    selftest.require(note, tmp_path)
    assert ran.read_text() == "x"


def test_the_first_start_takes_the_self_test_which_passes_here(forked, optimised, tmp_path):
    first = {name: value for name, value in optimised.items() if name != selftest.SWITCH}
    done = forked("-c", "import syncscope.kernels", env={**first, "SYNCSCOPE_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("ocl-selftest/*"))) == 1


def refused(child, complaint, cache):
    with pytest.raises(UserError, match=complaint) as caught:
        selftest.require(child, cache)
    assert "SYNCSCOPE_OCL_DEVICE" in caught.value.hint
    assert not cache.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="it is forked as programs are there")
def test_a_compiler_that_computes_wrongly_is_refused(forked, warm_process, tmp_path, monkeypatch):
    monkeypatch.delenv(selftest.SWITCH, raising=False)
    child = tmp_path / "child"
    with warm.program(warm_process, child, BROKEN):
        refused((str(child),), "matrix product is off by", tmp_path / "cache")


def test_a_compiler_that_aborts_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv(selftest.SWITCH, raising=False)
    refused((sys.executable, "-c", "import os; os.abort()"), "ended its process with code", tmp_path / "cache")


def test_where_nothing_links_what_pocl_compiles_that_is_said(tmp_path, monkeypatch):
    if "Portable" not in device.device.platform.name:
        pytest.skip("this is no PoCL")
    monkeypatch.delenv(selftest.SWITCH, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        selftest.require((sys.executable, "-c", "import os; os.abort()"), tmp_path)
    assert "apt install binutils" in caught.value.hint


def test_a_process_that_may_not_have_much_address_space(forked):
    if "NVIDIA" in device.device.platform.name:
        pytest.skip("this driver reserves more, and is not there without")
    resource = pytest.importorskip("resource")
    limit = 12_000_000 << 10  # bytes: what `ulimit -v 12000000` allows
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    if most != resource.RLIM_INFINITY and most < limit:
        pytest.skip("less is allowed already")
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
import torch, syncscope.kernels
print((torch.arange(65536, dtype=torch.float32, device="ocl") + 1).sum().item())
"""
    done = forked("-c", code)
    assert done.stdout == "2147516416.0\n", done.stderr


def test_a_program_is_given_the_declarations_that_it_needs(tmp_path):
    (tmp_path / "opencl-c.h").write_text(
        "#ifndef _OPENCL_H_\n#define _OPENCL_H_\n"
        '#include "opencl-c-base.h"\n'
        "#define __ovld __attribute__((overloadable))\n"
        "/* cos(x): float cos(float); */\n"
        "float __ovld cos(float x);\n"
        "#ifdef cl_khr_fp64\n"
        "double __ovld cos(double x); // cos(x)\n"
        "double __ovld cosh(double x);\n"
        "#endif\n"
        "#if defined(cl_khr_fp16) && \\\n    defined(cl_khr_fp64)\n"
        "#ifdef cl_khr_int64\nhalf __ovld sinh(half x);\n#endif\n\n"
        "#endif\n"
        "int __ovld atomic_add(volatile __global int *p,\n    int x);\n"
        "#endif\n"
    )
    expected = (
        "#undef _OPENCL_H_\n#ifndef _OPENCL_H_\n#define _OPENCL_H_\n#define __ovld __attribute__((overloadable))\n"
        "float __ovld cos(float x);\n#ifdef cl_khr_fp64\ndouble __ovld cos(double x);\n#endif\n#endif\n"
    )
    given = pocl_header.declarations(tmp_path / "opencl-c.h", "x = cos(x) + atomic_add_;")
    assert [line.rstrip() for line in given.splitlines() if line.strip()] == expected.splitlines()
    assert "volatile __global int *p,\n    int x);" in pocl_header.declarations(tmp_path / "opencl-c.h", "atomic_add")


def test_the_wheels_header_is_cut_and_its_functions_have_all_their_types():
    if not device.is_of_wheel(device.device):
        pytest.skip("not the PoCL of the wheel")
    source = "__kernel void cut(__global double *x, __global float *y) { x[0] = exp(x[0]); y[0] = exp(y[0]); }"
    header = pocl_header.path(device.WHEEL)
    assert len(pocl_header.declarations(header, source)) < header.stat().st_size / 10
    numbers = np.ones(1), np.ones(1, np.float32)
    queue = cl.CommandQueue(device.context)
    kept = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffers = [cl.Buffer(device.context, kept, hostbuf=one) for one in numbers]
    programs.build(source, "cut")(queue, (1,), None, *buffers)
    for buffer, one, exact in zip(buffers, numbers, (1e-15, 1e-6), strict=True):
        cl.enqueue_copy(queue, one, buffer)
        assert one[0] == pytest.approx(math.e, rel=exact)


LATE = """
import warnings
import torch
warnings.simplefilter("error")
net = torch.nn.Linear(3, 3)
net(torch.ones(2, 3)).sum().backward()
{between}
import syncscope.kernels
net.to("ocl")(torch.ones(2, 3, device="ocl")).sum().backward()
torch.nn.Linear(3, 3)(torch.ones(2, 3)).sum().backward()  # nor is the CPU's pass another
print(net.weight.grad.tolist())
"""


def test_a_backward_pass_may_have_come_before_the_device(forked):
    done = forked("-c", LATE.format(between=""))
    assert (done.returncode, done.stdout.strip()) == (0, str([[4.0] * 3] * 3)), done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="the thread that a GPU of CUDA has serves this device, too")
def test_where_its_thread_cannot_be_made_the_user_reads_what_to_do(forked):
    without = 'torch._C.__file__ = "nowhere"; warnings.simplefilter("default")'
    done = forked("-c", LATE.format(between=without))
    assert "a backward pass ran before `import syncscope.kernels`" in done.stderr
    assert "device_ready_queues_" in done.stderr
