"""What an optimizer, a list of parameters, a loader or an object under construction holds: `# waits: op` marks what waits."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "parameters of an optimizer, where arrays are used beside them": """
        import numpy as np

        def clipped(optimizer):
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None and p.grad.abs().max() > 3:  # waits: condition
                        return np.zeros(3)
            first = optimizer.param_groups[0]
            return first["lr"] > 3, first["params"][0].norm() > 3 and 1  # waits: condition
    """,
    "parameters in lists and dicts": """
        import numpy as np

        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.each = nn.ParameterList([nn.Parameter(torch.ones(1))])
                self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(1))})

            def forward(self, x):
                if self.each[0] > 1 or self.named["a"] > 1:  # waits: condition
                    return np.zeros(3)
                for p in self.each:
                    if p > 1:  # waits: condition
                        return x
                for name, p in self.named.items():
                    if name == "a" and p > 1:  # waits: condition
                        return x
                return [p.item() for p in self.named.values()]  # waits: item
    """,
    "tensors that are spread over arguments": """
        def grid(x, *sizes):
            axes = [torch.arange(size).float() for size in sizes]
            points = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
            return points.to(x.device)  # waits: to_device
    """,
    "a loader by the module in which torch defines it": """
        from torch.utils.data.dataloader import DataLoader

        class Trainer:
            def made(self) -> DataLoader:
                return build(self)

            def fit(self, net, device):
                data = self.made()
                for each in data:
                    x, y = each
                    net(x.to(device)).sum().backward()  # waits: to_device
    """,
    "a tuple of positions among other indices": """
        def diagonal(x: torch.Tensor, n: int):
            at = tuple(range(n))
            x[..., at, at] = 1  # waits: index_list
            return x[at]
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_what_is_held_is_known_where_it_is_taken_out(code: str) -> None:
    assert waits(code, 2) == marks(code)


CONSTRUCTED = {
    "what the constructor calls sets up, also in a class derived": """
        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.make_extra()
                self._build()

            def make_extra(self):
                pass

            def _build(self):
                self.grid = torch.arange(3)

        class Net(Base):
            def make_extra(self):
                self.anchors = torch.randn(3, 3)
                self.register_buffer("kept", torch.zeros(3))

            def forward(self, x: torch.Tensor):
                x = x + self.anchors.to(x.device)  # waits: to_device
                return x + self.grid.to(x.device) + self.kept.to(x.device)  # waits: to_device
    """,
    "what a class leaves where it is when it moves the rest": """
        class Tree:
            def __init__(self, depth, device):
                self.sizes = torch.zeros(depth, dtype=torch.long)
                self.keys = torch.zeros(depth)

            def to(self, device):
                tree = Tree(3, device)
                tree.keys = self.keys.cuda(non_blocking=True)
                tree.sizes = self.sizes.clone()
                return tree

            def cuda(self):
                return self.to("cuda")

        class Net(nn.Module):
            def forward(self, tree: Tree, x: torch.Tensor):
                if tree.keys.sum() > 3:  # waits: condition
                    return x[: tree.sizes[0].item()]
                return x
    """,
    "what a class may take along when it moves what it holds": """
        class Held:
            def __init__(self, depth):
                self.sizes = torch.zeros(depth, dtype=torch.long)

            def to(self, device):
                for name, value in vars(self).items():
                    setattr(self, name, value.to(device, non_blocking=True))
                return self

        class Net(nn.Module):
            def forward(self, held: Held, x: torch.Tensor):
                return x[: held.sizes[0].item()]  # waits: item
    """,
}


@pytest.mark.parametrize("code", CONSTRUCTED.values(), ids=CONSTRUCTED)
def test_where_an_attribute_lives_is_known_of_how_its_object_is_made_and_moved(code: str) -> None:
    assert waits(code, 2) == marks(code)
