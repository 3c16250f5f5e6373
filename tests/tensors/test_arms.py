"""What a test says holds inside of its arm, and behind an arm that does not go on: `# waits: op` marks what is told there."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "a list, as its test says, though its uses say tensor": """
        def loss(x):
            if isinstance(x, (list, tuple)):
                return sum(float(each) for each in x)
            return float(x.clamp(0))  # waits: float
    """,
    "one of the types of a Union": """
        def totals(x: torch.Tensor | list[torch.Tensor]):
            if isinstance(x, list):
                return [each.item() for each in x]  # waits: item
            return x.item()  # waits: item
    """,
    "made a list where it is none": """
        def totals(x):
            if not isinstance(x, (list, tuple)):
                x = [x.clamp(0)]
            return [float(each) for each in x]  # waits: float
    """,
    "a tensor and a number of dimensions, asked at once": """
        def rows(x, mask: torch.Tensor):
            if isinstance(x, torch.Tensor) and x.dim() == 1:
                if x[0]:  # waits: condition
                    return x
            return None
    """,
    "no number behind an early return": """
        def scale(x):
            if not isinstance(x, torch.Tensor):
                return x
            return float(x)  # waits: float
    """,
    "a number by one of two tests": """
        def scale(x: torch.Tensor):
            if isinstance(x, int) or isinstance(x, float):
                return float(x)
            return float(x)  # waits: float
    """,
    "by the exact type": """
        def scale(x: torch.Tensor):
            if type(x) is float or type(x) in (int, bool):
                return float(x)
            if type(x) == torch.Tensor:
                return float(x)  # waits: float
    """,
    "by match": """
        def scale(x):
            match x:
                case torch.Tensor():
                    return float(x)  # waits: float
                case int() | float():
                    return float(x)
                case list():
                    return float(x.pop())
    """,
    "a tensor that a pattern names": """
        def scale(x):
            match x:
                case torch.Tensor() as t if t.ndim == 0:
                    return float(t)  # waits: float
    """,
    "an array of numpy": """
        import numpy as np

        def scale(x: torch.Tensor):
            if isinstance(x, np.ndarray):
                return x.max().item()
            return x.max().item()  # waits: item
    """,
    "remembered, and asked for of another value": """
        def scale(x):
            known = isinstance(x, torch.Tensor)
            if not known:
                x = torch.as_tensor(x).exp()
            total = x.sum()
            if known:
                return total
            return x.sum().item()  # waits: item
    """,
    "remembered, of what has changed since": """
        def scale(x, device):
            number = isinstance(x, float)
            if number:
                x = torch.full((3,), x, device=device)
            x = x * 2
            return x.sum().item() if number else x  # waits: item
    """,
    "None in its arm": """
        def scale(x: torch.Tensor | None, y: torch.Tensor):
            if x is None:
                x = y.max()
            return x.item()  # waits: item
    """,
    "checked, or it ends": """
        import sys

        def scale(x):
            if not isinstance(x, torch.Tensor):
                sys.exit("a tensor, please")
            return float(x)  # waits: float
    """,
    "checked by torch": """
        def first(x: torch.Tensor):
            torch._assert(x.dim() == 1, "a vector, please")
            return [float(x[0]), int(x[:2])]  # waits: float  # waits: int
    """,
    "as many dimensions as another": """
        def picked(x: torch.Tensor):
            if len(x.size()) == 1:
                return int(x[0])  # waits: int
    """,
    "positions, by their dtype": """
        def picked(x: torch.Tensor, at: torch.Tensor):
            if at.dtype == torch.int64:
                return x[at]
            return x[at.bool()]  # waits: mask_read
    """,
    "a mask behind a cast": """
        def picked(x: torch.Tensor, at: torch.Tensor):
            if at.dtype != torch.bool:
                at = at.bool()
            return x[at]  # waits: mask_read
    """,
    "a text": """
        def picked(name):
            if isinstance(name, str):
                return float(name)
            return float(name.clamp(0))  # waits: float
    """,
    "a loop that goes on": """
        def total(values):
            found = 0.0
            for value in values:
                if not torch.is_tensor(value):
                    continue
                found += value.item()  # waits: item
            return found
    """,
    "an attribute": """
        class Meter:
            def add(self, value):
                if isinstance(value, torch.Tensor):
                    self.last = value
                    return float(self.last)  # waits: float
                return float(value)
    """,
    "a name given in the test": """
        def read(state):
            if isinstance(step := state["step"], torch.Tensor):
                return float(step)  # waits: float
            return float(step)
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_a_test_holds_inside_of_its_arm(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
