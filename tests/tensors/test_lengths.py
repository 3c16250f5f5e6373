"""What people call lengths is a vector, most likely: one of them is a number, which is no proof of it for a rewrite."""

import ast

from tensors.marked import marks, waits, whole

from syncscope.linter.config import Config
from syncscope.linter.engine import check
from syncscope.tensors.interpret import facts

CODE = """
def last(h: torch.Tensor, lengths: torch.Tensor, ilens: torch.Tensor):
    out = [h[b, n - 1] for b, n in enumerate(lengths)]  # waits: scalar_index
    for b in range(h.size(0)):
        out.append(h[b, ilens[b] - 1])  # waits: scalar_index
    return out, h[torch.arange(3, device=h.device), lengths - 1]

def others(h: torch.Tensor, positions: torch.Tensor, lengths: list[int], lens: torch.Tensor):
    keep = lens > 2
    return [h[n] for n in positions], h[lengths[0]], h[0][lens[keep]]  # waits: mask_read
"""


def test_one_of_them_is_read_where_it_is_an_index() -> None:
    assert waits(CODE, confidence=2) == marks(CODE)


def test_no_fix_rests_on_it() -> None:
    found = check("x.py", whole(CODE).encode(), Config()).findings
    assert all(each.fix is None for each in found if each.rule == "tensor-as-index")


def test_its_dimensions_stay_unknown() -> None:
    known = facts(whole(CODE).encode(), "x.py")
    one = [
        fact.ndim for node, fact in known.items() if isinstance(node, ast.Subscript) and ast.unparse(node) == "ilens[b]"
    ]
    assert one == [None]
