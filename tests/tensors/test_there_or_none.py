"""What may be None is known as it was made where a test says that it is there: `# waits: op` marks what waits."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "in one expression": """
        class Weighted(nn.Module):
            def __init__(self, weights=None):
                super().__init__()
                self.weight = torch.tensor(weights) if weights is not None else None

            def forward(self, x: torch.Tensor):
                if self.weight is not None:
                    x = x * self.weight.to(x.device)  # waits: to_device
                return x
    """,
    "in two arms, and under a name": """
        class Weighted(nn.Module):
            def __init__(self, weights=None):
                super().__init__()
                if weights is not None:
                    self.weight = torch.tensor(weights)
                else:
                    self.weight = None

            def forward(self, x: torch.Tensor):
                weight = self.weight
                if weight is None:
                    return x
                return x * weight.to(x.device)  # waits: to_device
    """,
    "until it is given": """
        class Weighted(nn.Module):
            def __init__(self, weights=None):
                super().__init__()
                self.weight = None
                if weights is not None:
                    self.weight = torch.FloatTensor(weights)

            def forward(self, x: torch.Tensor):
                weight = None if self.weight is None else self.weight.to(x.device)  # waits: to_device
                return nn.functional.cross_entropy(x, x, weight=weight)
    """,
    "what is registered moves along": """
        class Weighted(nn.Module):
            def __init__(self, weights=None):
                super().__init__()
                self.register_buffer("weight", torch.tensor(weights) if weights is not None else None)

            def forward(self, x: torch.Tensor):
                if self.weight is not None:
                    x = x * self.weight.to(x.device)
                return x
    """,
    "what is moved in the step stays there": """
        class Weighted(nn.Module):
            def __init__(self, weights=None):
                super().__init__()
                self.weight = torch.tensor(weights) if weights is not None else None

            def forward(self, x: torch.Tensor):
                if self.weight is not None:
                    self.weight = self.weight.to(x.device)
                    x = x * self.weight.to(x.device)
                return x
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_what_may_be_none_is_known_behind_a_test(code: str) -> None:
    assert waits(code, 2) == marks(code)


GIVEN = {
    "a list of numbers by default": """
        import numpy as np

        class Grid(nn.Module):
            def __init__(self, anchors=((1, 2), (3, 4)), other=None):
                super().__init__()
                self.anchors = torch.as_tensor(anchors).float()
                self.other = torch.as_tensor(other).float()

            def forward(self, x: torch.Tensor):
                return x + self.anchors.to(x.device) + self.other.to(x.device)  # waits: to_device
    """,
    "an array, as it is announced": """
        import numpy as np

        class Critic(nn.Module):
            def forward(self, obs: np.ndarray | torch.Tensor, act: torch.Tensor):
                act = torch.as_tensor(act, device=self.device)
                return self.net(torch.as_tensor(obs, device=self.device), act)  # waits: tensor_literal
    """,
    "a network that the same file builds with": """
        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                h = nn.functional.relu(self.lin(x))
                return h[h > 0].mean()  # waits: mask_read

        class Fit:
            def __init__(self, net, loader):
                self.net, self.loader = net, loader

            def fit(self):
                for x in self.loader:
                    loss = self.net(x.cuda())  # waits: to_device
                    loss.backward()  # waits: backward

        def main(loader):
            Fit(Net(), loader).fit()
    """,
    "a scaler with a flag, which is mostly off": """
        def step(optimizer, amp: bool):
            scaler, sure = torch.amp.GradScaler(enabled=amp), torch.amp.GradScaler(enabled=True)
            scaler.step(optimizer)
            sure.step(optimizer)  # waits: grad_scaler
    """,
    "anomalies that a flag says to look for": """
        def step(net, x, watch: bool):
            with torch.autograd.set_detect_anomaly(watch):
                net(x)
            with torch.autograd.set_detect_anomaly(True):  # waits: anomaly
                net(x)
            with torch.autograd.detect_anomaly():  # waits: anomaly
                net(x)
    """,
}


@pytest.mark.parametrize("code", GIVEN.values(), ids=GIVEN)
def test_what_is_given_is_taken_for_what_it_mostly_is(code: str) -> None:
    assert waits(code, 2) == marks(code)
