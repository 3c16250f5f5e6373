"""The device that `benchmarks/step_waits.py` pretends: what the host would wait for, and what asks for nothing."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def heard(monkeypatch):
    """What is heard while a function runs beside the pretended device."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    from pretended_device import Operators

    def of(run):
        found = []
        below = Operators(found.append)
        with below, below.functions:
            result = run()
        return found, result

    yield of
    sys.modules.pop("pretended_device", None)


def test_a_size_makes_an_empty_tensor_and_copies_nothing(heard):
    def run():
        x = torch.zeros(2, device="cuda")
        return x.new(torch.Size([3])).shape, x.new(3).shape

    assert heard(run) == ([], (torch.Size([3]), torch.Size([3])))


def test_a_class_of_tensors_makes_its_own_on_the_host(heard):
    def run():
        return (
            torch.Tensor(3).cuda().is_cuda,
            torch.FloatTensor(2, 2).is_cuda,
            torch.LongTensor(torch.Size([2])).is_cuda,
        )

    assert heard(run) == (["copy"], (True, False, False))


def test_what_autograd_makes_lies_beside_the_loss(heard):
    def run():
        x = torch.zeros(3, device="cuda", requires_grad=True)
        x[:2].sum().backward()
        return x.grad.is_cuda

    assert heard(run) == ([], True)


def test_values_of_the_host_are_copied(heard):
    found, _ = heard(lambda: torch.zeros(2, device="cuda").new([1.0, 2.0]))
    assert found == ["copy"]


def test_an_index_alone_is_a_device(heard):
    def run():
        return (
            torch.device(0),
            torch.zeros(2, device=torch.device(0)).is_cuda,
            torch.device("cpu"),
            torch.device("cuda:0"),
        )

    cuda = torch.device("cuda", 0)
    assert heard(run) == ([], (cuda, True, torch.device("cpu"), cuda))


def test_a_module_is_moved_by_an_index_alone(heard):
    assert heard(lambda: torch.nn.Linear(1, 1).to(0).weight.device)[1] == torch.device("cuda", 0)


@pytest.mark.parametrize(
    "read", [lambda x: x.item(), float, bool, lambda x: x.cpu(), lambda x: x.reshape(1)[x.reshape(1) > 0]]
)
def test_reads_are_heard_in_inference_mode_as_without_gradients(heard, read):
    def run(mode):
        x = torch.ones((), device="cuda")
        with mode():
            return read(x * 2)

    assert heard(lambda: run(torch.inference_mode)) == heard(lambda: run(torch.no_grad))
    assert heard(lambda: run(torch.inference_mode))[0]


def test_what_was_made_in_inference_mode_is_heard_outside_of_it(heard):
    def run():
        with torch.inference_mode():
            x = torch.ones((), device="cuda") * 2
        return x.item()

    assert heard(run) == (["_local_scalar_dense"], 2.0)


def test_what_the_steps_wait_for_is_not_told_of_the_package_that_calls_them(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trained.py").write_text("def trained(loss, x):\n    loss(x)\n    return loss(x).item()\n")
    steps = tmp_path / "steps.py"
    steps.write_text(
        "from trained import trained\n@step\ndef once():\n    return lambda: trained(loss, torch.ones(2, device=D))\n"
        "def loss(x):\n    return x[x > 0].sum()\n"
    )
    import step_waits

    recorder = step_waits.Recorder(tmp_path)
    recorder.record(step_waits.makers(steps)["once"])
    assert [*recorder.truth()["trained.py"]["waits"]] == ["3"]


def test_of_a_loop_counts_what_each_of_its_steps_waits_for(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fitted.py").write_text(
        "import torch\n"
        "def fit(net, batches):\n"
        "    optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "    print(net.weight.sum().item())\n"
        "    for batch in batches:\n"
        "        loss = net(batch).sum()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
        "        print(loss.item())\n"
    )
    steps = tmp_path / "steps.py"
    steps.write_text(
        "from fitted import fit\n@step\ndef fitted():\n    net = torch.nn.Linear(2, 1).to(D)\n"
        "    return loop(lambda: fit(net, [torch.ones(3, 2, device=D)] * 9))\n"
        "@step\ndef short():\n    return loop(lambda: None)\n"
    )
    import step_waits

    recorder, makers = step_waits.Recorder(tmp_path), step_waits.makers(steps)
    assert recorder.record(makers["fitted"]) == 1
    truth = recorder.truth()["fitted.py"]
    assert [*truth["waits"]] == ["9"]
    assert truth["executed"] == [5, 6, 7, 8, 9]
    with pytest.raises(ValueError, match="ran 0 steps"):
        recorder.record(makers["short"])


def test_a_file_of_steps_names_the_packages_that_no_step_needs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    steps = tmp_path / "steps.py"
    steps.write_text(
        "absent('not_there')\nimport not_there.inside as one\n@step\ndef once():\n    return one.anything\n"
    )
    import step_waits

    assert callable(step_waits.makers(steps)["once"]())
    assert sys.modules.pop("not_there").inside is sys.modules.pop("not_there.inside")


def test_the_old_names_of_types_of_the_device_make_tensors_there(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import step_waits

    heard = []
    with step_waits.pretended(heard.append):
        assert torch.cuda.FloatTensor(2, 3).is_cuda
        assert not heard
        assert torch.cuda.LongTensor([1, 2]).is_cuda
        assert heard == ["copy"]
        assert torch.ones(2).type(torch.cuda.HalfTensor).dtype is torch.half


def test_numbers_of_the_host_are_written_where_a_mask_of_the_device_says_once_it_is_brought_over(heard):
    def run():
        weights, mask = torch.ones(3), torch.ones(3, device="cuda") > 0
        weights[mask] = 2.0
        return weights.is_cuda

    assert heard(run) == (["copy"], False)


def test_a_sparse_tensor_that_is_made_unique_tells_how_many_entries_are_left(heard):
    def run():
        at = torch.zeros(2, 3, dtype=torch.long, device="cuda")
        made = torch.sparse_coo_tensor(at, torch.ones(3, device="cuda"), (2, 2)).coalesce()
        return made.coalesce()._nnz()

    assert heard(run) == (["_coalesce"], 1)


def test_the_exponential_of_a_matrix_asks_how_large_it_is(heard):
    found, _ = heard(lambda: torch.matrix_exp(torch.zeros(2, 2, device="cuda")))
    assert found == ["linalg_matrix_exp"]


def test_lists_and_arrays_pick_by_one_copy_and_their_gradient_by_none(heard):
    def run():
        x = torch.ones(3, 4, device="cuda", requires_grad=True)
        y = x[[0, 1]] + x[:, np.array([0, 1, 2, 3])][:2]
        y.sum().backward()
        return x.grad.sum().cpu().item()

    assert heard(run) == (["copy"] * 3, 16.0)


def test_a_mask_of_an_array_is_copied_and_its_positions_are_counted(heard):
    found, _ = heard(lambda: torch.zeros(3, device="cuda")[np.array([True, False, True])])
    assert found == ["copy", "mask"]
