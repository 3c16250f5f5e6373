import pytest

pytest.importorskip("pyopencl")
pytest.importorskip("torch")


def test_peaks_are_measured_once(monkeypatch, tmp_path):
    from syncscope.tracers import peaks

    devices = peaks.devices()
    if not devices:
        pytest.skip("no OpenCL device")
    monkeypatch.setattr(peaks, "_kept", lambda device: tmp_path / "new" / "peaks.json")
    monkeypatch.setattr(peaks, "COPY_BYTES", 1 << 20)
    monkeypatch.setattr(peaks, "SIDE", 64)
    bandwidth, flops = peaks.peaks(devices[0])
    assert 1e6 < bandwidth < 1e14
    assert 1e6 < flops < 1e16
    monkeypatch.setattr(peaks, "_flops", lambda device: pytest.fail("measured again"))
    assert peaks.peaks(devices[0]) == (bandwidth, flops)
    with pytest.raises(pytest.fail.Exception):
        peaks.peaks(devices[0], again=True)
