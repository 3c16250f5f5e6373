import pytest

pytest.importorskip("pyopencl")
pytest.importorskip("torch")


def test_ceilings_are_measured_once(monkeypatch, tmp_path):
    from syncscope.tracers import ceilings

    devices = ceilings.devices()
    if not devices:
        pytest.skip("no OpenCL device")
    monkeypatch.setattr(ceilings, "_kept", lambda device: tmp_path / "new" / "ceilings.json")
    monkeypatch.setattr(ceilings, "COPY_BYTES", 1 << 20)
    monkeypatch.setattr(ceilings, "SIDE", 64)
    bandwidth, flops = ceilings.ceilings(devices[0])
    assert 1e6 < bandwidth < 1e14
    assert 1e6 < flops < 1e16
    monkeypatch.setattr(ceilings, "_flops", lambda device: pytest.fail("measured again"))
    assert ceilings.ceilings(devices[0]) == (bandwidth, flops)
    with pytest.raises(pytest.fail.Exception):
        ceilings.ceilings(devices[0], again=True)
