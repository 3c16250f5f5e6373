"""What lives on the host among what is computed on the device: `# waits: op` marks every line that does, and no other does."""

import textwrap

import pytest

from syncscope.tensors.interpret import sites

CASES = {
    "what a matcher found": """
        def loss(self, logits: torch.Tensor, masks: torch.Tensor, indices):
            found = self._get_source_permutation_idx(indices)
            return logits[found] - masks[other(indices)]  # waits: index_host
    """,
    "a class of the host as a dtype": """
        def mask(answer: torch.Tensor):
            flags = torch.isnan(answer).type(torch.float)
            return flags, torch.isnan(answer).type(torch.FloatTensor)  # waits: cpu
    """,
    "a module that is made where it is used": """
        def criterion(logits: torch.Tensor, given: Loss, device):
            loss = Loss()
            loss.to(device)  # waits: to_device
            given.to(device)
            return loss(logits)
    """,
    "a list that was filled": """
        def chosen(scores: torch.Tensor):
            kept = []
            for number in range(4):
                kept.append(number)
            return scores.cuda()[kept]  # waits: index_list
    """,
    "a size that may not be given": """
        def positions(ends: torch.Tensor, size=None):
            index = torch.arange(ends.numel() - 1, device=ends.device)
            return index.repeat_interleave(ends.diff(), output_size=size)  # waits: repeat_interleave
    """,
}
HEAD = """
import torch


class Loss(torch.nn.Module):
    def forward(self, x):
        return x

    def _get_source_permutation_idx(self, indices):
        rows = torch.cat([torch.full_like(source, i) for i, (source, _) in enumerate(indices)])
        return rows, torch.cat([source for (source, _) in indices])

"""


@pytest.mark.parametrize("name", CASES)
def test_waits_where_the_marks_say(name: str) -> None:
    body = textwrap.dedent(CASES[name]).strip()
    indent = "    " if "(self" in body else ""
    code = HEAD + textwrap.indent(body, indent) + "\n"
    marked = {
        (number, line.partition("# waits: ")[2])
        for number, line in enumerate(code.splitlines(), 1)
        if "# waits" in line
    }
    assert {(s.place.line, s.op.value) for s in sites(code.encode(), "x.py")} == marked
