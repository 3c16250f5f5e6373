"""The table of torch's callables is torch's own, and no operator that torch says waits is unknown to us."""

import json
import sys
from pathlib import Path

import pytest

from syncscope.model.ops import Op
from syncscope.tensors.torch.signatures import function, method, table

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2]))
from tools import generate_torch_table  # noqa: E402  # needs torch

# operator -> the op under which a site of it is reported, or why it needs none
COVERED = {
    "_ctc_loss": "ctc_loss",
    "_unique": "unique",
    "_unique2": "unique",
    "argwhere": "argwhere",
    "bincount": "bincount",
    "index": "mask_read",
    "linalg_lstsq": "linalg_check",
    "masked_select": "masked_select",
    "nonzero": "nonzero",
    "one_hot": "one_hot",
    "repeat_interleave": "repeat_interleave",
    "unique_consecutive": "unique_consecutive",
    "unique_dim": "unique",
    "unique_dim_consecutive": "unique_consecutive",
    "_local_scalar_dense": "item",
    "allclose": "allclose",
    "equal": "equal",
    "item": "item",
}
EXEMPT: dict[str, str] = {}  # operator -> the reason in words


def test_every_operator_that_torch_tags_as_waiting_is_covered() -> None:
    for tag, names in generate_torch_table.tagged().items():
        for name in names:
            assert name in COVERED or name in EXEMPT, f"torch tags {name} as {tag}: cover it with an op or say why not"
    assert set(COVERED.values()) <= set(Op)


def test_the_table_is_the_installed_torchs() -> None:
    stored = json.loads(generate_torch_table.TABLE.read_text())
    if stored["version"] != torch.__version__.partition("+")[0]:
        pytest.skip(f"the table is of torch {stored['version']}: python -m tools.generate_torch_table")
    assert stored == json.loads(generate_torch_table.text())


def test_signatures_say_what_comes_back_and_where_numbers_go() -> None:
    assert function("torch.narrow").slots["length"]
    assert function("torch.nonzero") is not None
    assert (method("max").tensor, method("max").tensors) == (True, True)
    assert "alpha" in method("add_").slots
    assert function("torch.nn.functional.no_such_thing") is None
    assert {"Linear", "LSTM"} <= table().modules
    assert "Adam" in table().optimizers
