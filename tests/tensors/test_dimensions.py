"""How many dimensions a value has: what is known of it is what torch itself makes."""

import ast

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from syncscope.tensors.interpret import facts

N, M, B = 5, 4, 3
KNOWN = """
torch.randint(0, 5, (2, 3))
torch.randint(5, size=(2, 3))
torch.zeros(2, 3)
torch.zeros((2, 3))
torch.zeros(n, m)
torch.full((2, 3), 1.0)
torch.arange(n)
torch.eye(3)
torch.randn(b, n)
torch.stack([torch.zeros(3), torch.zeros(3)])
torch.stack([torch.zeros(3), torch.zeros(3)], dim=1)
torch.cat([torch.zeros(3), torch.zeros(3)])
torch.zeros(3).unsqueeze(0)
torch.zeros(2, 3).view(-1)
torch.zeros(2, 3).view(6, 1, 1)
torch.zeros(2, 3).reshape(6)
torch.zeros(2, 3).flatten()
torch.zeros(2, 3, 4).flatten(1)
torch.zeros(2, 3) @ torch.zeros(3, 4)
torch.matmul(torch.zeros(2, 3), torch.zeros(3))
torch.mm(torch.zeros(2, 3), torch.zeros(3, 2))
torch.zeros(2, 3).sum()
torch.zeros(2, 3).sum(1)
torch.zeros(2, 3).sum(dim=1, keepdim=True)
torch.zeros(2, 3).mean((0, 1))
torch.zeros(2, 3).max(1)[0]
torch.zeros(2, 3).max(1).values
torch.zeros(2, 3).argmax(1)
torch.zeros(2, 3).argmax(-1, keepdim=True)
torch.zeros(2, 3)[0]
torch.zeros(2, 3)[:, 0]
torch.zeros(2, 3)[:, None]
torch.zeros(2, 3)[..., 0]
torch.zeros(2, 3)[torch.arange(2)]
torch.zeros(2, 3)[torch.zeros(2, 3) > 0]
torch.zeros(2, 3) > 0
torch.zeros(3) + torch.zeros(2, 3)
torch.zeros(2, 3).t()
torch.zeros(2, 3).transpose(0, 1)
torch.zeros(2, 3, 4).permute(0, 2, 1)
torch.zeros(2, 3).expand(4, 2, 3)
torch.zeros(2, 3).softmax(-1)
F.relu(torch.zeros(2, 3))
F.one_hot(torch.zeros(3).long(), 4)
F.cross_entropy(torch.zeros(2, 3), torch.zeros(2).long())
nn.Linear(3, 4)(torch.zeros(2, 3))
nn.Embedding(3, 4)(torch.zeros(2).long())
torch.zeros(2, 3).gather(1, z)
torch.zeros_like(torch.zeros(2, 3))
torch.where(torch.zeros(2, 3) > 0, 1.0, torch.zeros(2, 3))
torch.topk(torch.zeros(2, 3), 2)[0]
torch.sort(torch.zeros(2, 3))[1]
torch.nonzero(torch.zeros(2, 3))
torch.zeros(2, 3).norm(dim=1)
torch.linalg.norm(torch.zeros(2, 3), dim=-1)
torch.cdist(torch.zeros(2, 3), torch.zeros(2, 3))
torch.zeros(2, 3).repeat(2, 1)
torch.zeros(2, 3).chunk(2)[0]
torch.zeros(2, 3).unbind(0)[0]
torch.zeros(2, 3).clone().detach().cpu().float()
torch.zeros(2, 3).any(1)
torch.zeros(2, 3).cumsum(0)
torch.tril(torch.ones(3, 3))
torch.outer(torch.zeros(3), torch.zeros(3))
torch.tensor([1, 2])
torch.tensor([[1, 2]])
torch.zeros(x2.shape[0], 3)
torch.zeros(2, 3).index_select(0, z)
torch.randperm(5)[:3]
torch.bincount(z)
torch.zeros(2,3).T
torch.zeros(2,3).masked_fill(torch.zeros(2,3) > 0, 0)
torch.logsumexp(torch.zeros(2,3), dim=1)
torch.zeros(2,3).quantile(0.5)
torch.diagonal(torch.zeros(3,3))
torch.zeros(2,3).narrow(0, 0, 1)
torch.zeros(2,3).select(0, 1)
torch.dot(torch.zeros(3), torch.zeros(3))
torch.zeros(2,3).split(1)[0]
torch.meshgrid(torch.arange(3), torch.arange(3))[0]
torch.einsum("bi,bj->bij", torch.zeros(2, 3), torch.zeros(2, 3))
torch.einsum("ij,kj->ik", [torch.zeros(2, 3), torch.zeros(2, 3)])
""".strip().splitlines()
UNKNOWN = """
torch.zeros(n)
torch.zeros(2, 1).squeeze(1)
torch.zeros(2, 1).squeeze(-1)
F.cross_entropy(torch.zeros(2, 3), torch.zeros(2).long(), reduction="none")
torch.zeros(x2.shape)
""".strip().splitlines()
HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F

def f(n, m, b, x2: torch.Tensor, z: torch.Tensor):
    """


def known(text: str) -> int | None:
    """The dimensions that the inference knows of an expression."""
    tree = ast.parse(HEAD + text)
    value = tree.body[-1].body[0].value  # type: ignore[attr-defined]  # the only function
    return facts((HEAD + text).encode(), "x.py", None, tree)[value].ndim


@pytest.mark.parametrize("text", KNOWN)
def test_what_is_known_is_what_torch_makes(text: str) -> None:
    names = {"torch": torch, "nn": nn, "F": F, "n": N, "m": M, "b": B}
    names |= {
        "x2": torch.zeros(2, 3),
        "z": torch.zeros(2, 3, dtype=torch.long) if "gather" in text else torch.tensor([0, 1]),
    }
    assert known(text) == eval(text, names).ndim


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_hangs_on_sizes_or_on_what_is_not_seen_is_not_known(text: str) -> None:
    assert known(text) is None


@pytest.mark.parametrize(
    ("test", "inside", "behind"),
    [
        ("x.dim() == 2", 2, None),
        ("x.ndim != 2", None, 2),
        ("len(x.shape) == 3", 3, None),
        ("x.dim() > 2", None, None),
        ("x.ndimension() == 1 and flag", 1, None),
        ("len(x) == 4", None, None),
    ],
)
def test_an_arm_knows_what_its_test_asked(test: str, inside: int | None, behind: int | None) -> None:
    code = f"import torch\n\ndef f(x: torch.Tensor, flag):\n    if {test}:\n        return x + 1\n    return x - 1\n"
    tree = ast.parse(code)
    known = {ast.unparse(node): fact.ndim for node, fact in facts(code.encode(), "x.py", None, tree).items()}
    assert (known["x + 1"], known["x - 1"]) == (inside, behind)


def test_a_row_of_a_matrix_that_is_drawn_is_no_number() -> None:
    code = "import torch\n\ndef forward(n, x: torch.Tensor):\n    e = torch.randint(0, n, (2, 120000), device='cuda')\n"
    tree = ast.parse(code + "    return x[e[0]]\n")
    index = tree.body[-1].body[-1].value.slice  # type: ignore[attr-defined]
    assert facts((code + "    return x[e[0]]\n").encode(), "x.py", None, tree)[index].ndim == 1
