"""An index that is made where it is used: when it is, and when not."""

import inspect
import textwrap

import pytest
from rules.driver import findings

from syncscope.model.finding import Safety
from syncscope.rewrites import make_index_on_device

HEAD = """
import torch

device = torch.device("cuda")

def step(x: torch.Tensor, labels: torch.LongTensor, n: int):
    x = torch.zeros(n, 4, device=device) + x
"""
CASES = {  # what follows, and what is offered
    "return x[torch.arange(n), labels]": {Safety.SAFE},
    "x[torch.eye(n, 4, dtype=torch.bool)] = 0.0": {Safety.SAFE},
    "return x[torch.eye(n, 4, dtype=torch.bool)]": {None},  # a mask is best looked through on the host
    "return x[torch.randperm(n)]": {Safety.UNSAFE},
    "rows = torch.arange(n)\n    return rows.tolist(), x[rows]": {Safety.SUGGEST},  # and read on the host
    "rows = torch.arange(n)\n    x = x.exp()\n    return x[rows, labels]": {
        Safety.SUGGEST
    },  # another x than where it was made
    "rows = torch.arange(n)\n    return x[rows, labels]": {Safety.SAFE},
    "return [x[torch.arange(n)] for x in (x.exp(), x)]": {Safety.SAFE},
}


@pytest.mark.parametrize("code", CASES)
def test_an_index_is_made_on_the_device_where_it_serves_for_nothing_else(code: str) -> None:
    whole = HEAD + textwrap.indent(code, "    ") if "\n" not in code else HEAD + "    " + code + "\n"
    found = [f.fix for f in findings(whole, "host-tensor-as-index")]
    assert {fix.safety if fix else None for fix in found} == CASES[code]
    for fix in found:
        moved = fix is not None and any("device=x.device" in edit.text for edit in fix.edits)
        assert moved == (fix is not None and fix.safety is not Safety.SUGGEST)


def test_the_example_gives_the_same_where_there_is_no_gpu() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("the example then takes a tensor of the host to the GPU")
    example = make_index_on_device.EXAMPLES[0]
    given = torch.arange(12.0).view(3, 4), torch.tensor([3, 0, 2])
    results = []
    for code in (example.code, example.fixed):
        space: dict[str, object] = {}
        exec(inspect.cleandoc(code), space)
        results.append(space["forward"](*given))
    assert torch.equal(*results)
