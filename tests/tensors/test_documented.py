"""What a docstring says of a parameter is known of it: `# waits: op` marks each line that waits, and no other line does."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "documented": """
        def google(event, start, count, other, rows):
            \"\"\"Something.

            Args:
                event (torch.Tensor, bool): whether it happened.
                start: scalar float64 Tensor giving the start.
                count (int): how many.
                other: Tensor or float.
                rows (list of tensors): of no use here.
            \"\"\"
            kept = start[event]  # waits: mask_read
            if start > 0:  # waits: condition
                return kept
            if count > 0 or other > 0:
                return rows[0]

        def numpy_style(x, names):
            \"\"\"
            Parameters
            ----------
            x : Tensor, shape=(N, D)
                points
            names : str
            \"\"\"
            while x[0] > x[1]:  # waits: condition
                x = step(x)
            if names > "b":
                return x

        def sphinx(x, y):
            \"\"\"
            :param torch.Tensor x: points
            :param y: a `b x n`-dim Tensor
            \"\"\"
            assert x[0] <= 1  # waits: condition
            return float(y[0])  # waits: float
    """,
    "documented for __init__ by its class": """
        class Grid:
            \"\"\"A grid.

            Args:
                points (Tensor): of the grid.
            \"\"\"

            def __init__(self, points):
                self.points = points

            def first(self):
                return float(self.points[0])  # waits: float
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
