"""Code of modules and of what lives on the host beside them: `# waits: op` marks every line that does, and no other does."""

import textwrap

from syncscope.tensors.interpret import sites

HEAD = """
import numpy as np
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.scale(x)


class Alone(Net):
    def __init__(self):
        torch.nn.Module.__init__(self)


class Derived(Net):
    def __init__(self):
        Net.__init__(self)


class Loss(torch.nn.Module):
    def forward(self, x):
        return x

    def _get_source_permutation_idx(self, indices):
        rows = torch.cat([torch.full_like(source, i) for i, (source, _) in enumerate(indices)])
        return rows, torch.cat([source for (source, _) in indices])

"""


def waits_as_marked(case: str) -> None:
    """Ask what waits in the code of a case, behind that of the modules."""
    body = textwrap.dedent(case).strip()
    indent = "    " if "(self" in body else ""
    code = HEAD + textwrap.indent(body, indent) + "\n"
    marked = {
        (number, line.partition("# waits: ")[2])
        for number, line in enumerate(code.splitlines(), 1)
        if "# waits" in line
    }
    assert {(s.place.line, s.op.value) for s in sites(code.encode(), "x.py")} == marked
