"""What modules hold, send and leave behind on the host: `# waits: op` marks every line that does, and no other does."""

import pytest
from tensors.host_side import waits_as_marked

CASES = {
    "a module that is made where it is used": """
        def criterion(logits: torch.Tensor, given: Net, device):
            loss, net, parts = Loss(), Net(), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Conv2d(3, 4, 1))
            loss.to(device)
            net.to(device)  # waits: to_device
            net.to(device)
            parts.cuda()  # waits: to_device
            given.to(device)
            return loss(net(logits))
    """,
    "a module that its base does not set up": """
        def criterion(device):
            alone = Alone().to(device)
            return alone, Derived().to(device)  # waits: to_device
    """,
    "a module that is perhaps moved": """
        def fit(inputs: torch.Tensor, cuda: bool):
            net, host = Net(), Net()
            if cuda:
                net.cuda()  # waits: to_device
            loss = net(torch.ones(3).to("cuda"))  # waits: created_on_host
            print(loss, host(torch.ones(3)), host.scale.weight, host(inputs))  # waits: format
    """,
    "a module that an object holds": """
        class Trainer:
            def __init__(self, device):
                self.net = Net()
                self.net.to(device)  # waits: to_device

            def step(self, x):
                print(self.net(x))  # waits: format
    """,
    "what a module makes and no buffer is, it leaves behind": """
        class Weighted(torch.nn.Module):
            def __init__(self, n: int, given: torch.Tensor):
                super().__init__()
                self.sizes = torch.tensor([1.0, 2.0])
                self.steps = torch.arange(n)
                self.given = given
                self.kept = torch.arange(n)
                self.register_buffer("held", torch.arange(n))
                self.register_buffer("later", None)
                self.later = torch.arange(n)

            def forward(self, x: torch.Tensor):
                self.kept = self.kept.to(x.device)
                x = x * self.sizes.to(x.device) + self.steps.type_as(x)  # waits: to_device
                return x + self.held.to(x.device) + self.later.to(x.device) + self.given.to(x.device)

        class Moving(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.sizes = torch.tensor([1.0, 2.0])

            def _apply(self, fn):
                self.sizes = fn(self.sizes)
                return super()._apply(fn)

            def forward(self, x: torch.Tensor):
                return x * self.sizes.to(x.device)
    """,
    "what a module leaves behind is read on the host, but for what it gets later or was given": """
        class Gated(torch.nn.Module):
            def __init__(self, n: int, given: torch.Tensor):
                super().__init__()
                self.which = torch.ones(n, dtype=torch.bool)
                self.which[0] = False
                self.count = torch.zeros(1)
                self.given = given
                self.register_buffer("held", torch.ones(n))

            def forward(self, x: torch.Tensor):
                for at, chosen in enumerate(self.which):
                    if chosen:
                        x = x + at
                if self.count.item() > 1:  # waits: item
                    return x
                if self.given.any():  # waits: condition
                    return -x
                self.count = x.sum()
                return x if self.held.all() else -x  # waits: condition
    """,
    "what is sent by name under what its attributes are called is on the host no more": """
        class Rows(torch.nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.which = torch.arange(n)

            def preload(self, device):
                for name in ("which",):
                    setattr(self, name, getattr(self, name).to(device))

            def forward(self, x: torch.Tensor):
                return -x if (self.which > 3).all() else x  # waits: condition

        class Parts:
            def __init__(self, n: int):
                self.which = torch.arange(n)

            def preload(self, device):
                for name, value in vars(self).items():
                    self.__setattr__(name, value.to(device))

            def halved(self, x: torch.Tensor):
                return -x if (self.which > 3).all() else x  # waits: condition

        class Named(torch.nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.which = torch.arange(n)

            def preload(self, names, device):
                for name in names:
                    setattr(self, name, name.upper())

            def forward(self, x: torch.Tensor):
                return -x if (self.which > 3).all() else x
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_waits_where_the_marks_say(name: str) -> None:
    waits_as_marked(CASES[name])
