"""`syncscope verify` on a GPU, whose sums come in whatever order its threads do: snapshots, and what versions compute."""

import json
from pathlib import Path

import pytest
from on_cuda.conftest import Program

VARIES = """
import torch

torch.manual_seed(0)
table = torch.nn.Embedding(64, 256).cuda()
model = torch.nn.LSTM(256, 256).cuda()
optimizer = torch.optim.Adam([*table.parameters(), *model.parameters()], 0.01)
words = [torch.randint(64, (32, 256)) for _ in range(3000)]
total = 0.0
for batch in words:
    batch = batch.cuda()
    optimizer.zero_grad()
    output, _ = model(table(batch))
    sums = torch.zeros(64, device="cuda").index_add(0, batch.view(-1), output.view(-1, 256)[:, 0])
    loss = output.square().mean() + sums.var()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total)
"""


def test_what_a_step_depends_on_is_put_back_on_the_device_too(on_cuda: Program) -> None:
    done = on_cuda(
        "-m",
        "pytest",
        "-q",
        "--noconftest",
        "-o",
        "pythonpath=tests",
        "-p",
        "no:cacheprovider",
        "tests/verify/test_snapshot.py",
    )
    assert not done.returncode, done.stdout
    assert "skipped" not in done.stdout


# A hundredth: by a ten-thousandth two runs as written differ, too, where others use the device.
@pytest.mark.parametrize(
    ("after", "values", "codes"),
    [("total += loss.detach().item()", "equal", (0, 1, 3)), ("total += 1.01 * loss.item()", "changed", (1,))],
)
def test_sums_that_vary_do_not_differ_while_values_are_compared(
    on_cuda: Program, tmp_path: Path, after: str, values: str, codes: tuple[int, ...]
) -> None:
    before, other = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(VARIES)
    other.write_text(VARIES.replace("total += loss.item()", after))
    done = on_cuda("-m", "syncscope", "verify", "--budget=40s", "--format=json", "--quiet", before, other)
    assert done.returncode in codes, done.stderr
    found = json.loads(done.stdout)
    assert (found["values"], found["way"]) in ((values, "one process"), (values, None))
    assert not found["noise"]
