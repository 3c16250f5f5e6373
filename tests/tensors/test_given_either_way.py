"""What a function takes in several kinds, what is sent part by part, what an object keeps: `# waits: op` marks each wait."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "a parameter that is announced as a tensor, and asked whether it is one": """
        def scaled(x: torch.Tensor, step: torch.Tensor):
            if not torch.is_tensor(step):
                step = torch.tensor(step, device=x.device)  # waits: tensor_literal
            return x * step

        class World:
            def step(self, actions):
                if isinstance(actions, np.ndarray):
                    actions = torch.from_numpy(actions).to(self.device)  # waits: created_on_host
                return self.model(actions)

            def rollout(self, state: torch.Tensor):
                return self.step(state.exp())
    """,
    "what was made of it before, and what a private function is surely given": """
        class Scale(nn.Module):
            def forward(self, x: torch.Tensor, scale=None):
                scale = x.exp().mean()
                if not isinstance(scale, torch.Tensor):
                    scale = torch.tensor(scale, device=x.device)
                return _scaled(x, scale)

        def _scaled(x, scale):
            if isinstance(scale, torch.Tensor):
                return x * scale
            return x * torch.tensor(scale, device=x.device)
    """,
    "a batch that is one tensor, or several": """
        class Trainer:
            def train(self, loader: torch.utils.data.DataLoader):
                for batch in loader:
                    self.model(self.parse(batch)).backward()

            def parse(self, batch):
                inputs, _ = batch
                if isinstance(inputs, torch.Tensor):
                    return inputs.to(self.device)  # waits: to_device
                elif isinstance(inputs, (tuple, list)):
                    return [None if each is None else each.to(self.device) for each in inputs]  # waits: to_device
    """,
    "a dict of each picture": """
        class Trainer:
            def train(self, loader: torch.utils.data.DataLoader):
                for images, targets in loader:
                    targets = [{k: v.to(self.device) for k, v in t.items()} for t in targets]  # waits: to_device
                    self.model(images, targets).backward()
    """,
    "what a batch of a class of its own holds": """
        class Encoded:
            def to(self, device):
                self.data = {k: v.to(device=device) for k, v in self.data.items()}  # waits: to_device
                return self

        class Pixels:
            def to(self, *args, **kwargs):
                for name, part in self.items():
                    if isinstance(part, (list, tuple)):
                        part = [each.to(*args, **kwargs) for each in part]  # waits: to_device
                return self

        class Times:
            def to(self, device):
                return Times(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})  # waits: to_device

        class Agent:
            def to(self, device):
                self.net.to(device)
                return self
    """,
    "as many dimensions as its size is unpacked to": """
        class Periods(nn.Module):
            def forward(self, x):
                b, t, n = x.size()
                return periods(x), x.mean(0)

        def periods(x):
            strength = abs(x).mean(0).mean(-1)
            strength[0] = 0  # waits: number_write
            return strength.topk(3)

        def ends(done: torch.Tensor):
            counts = done.sum(0).cumsum(0)
            many = counts[-1].item()  # waits: item
            counts[-1] = 0  # waits: number_write
            sizes = torch.LongTensor(2).to(done.device)  # waits: created_on_host
            sizes[0] = 3  # waits: number_write
            return counts, many, sizes

        def others(x: torch.Tensor):
            b, *more = x.shape
            x[0] = 0
            return x
    """,
    "a tensor that is unpacked where numbers are taken": """
        def turned(x: torch.Tensor, order: list[int]):
            turn = torch.arange(x.ndim, device=x.device)
            return x.permute(*turn), x.permute(*order)  # waits: size
    """,
    "a tuple of positions, one of them from the host": """
        class Scaler(nn.Module):
            def positions(self, x: torch.Tensor):
                return x.argmax(1).view(-1), torch.arange(self.n).repeat(3)

            def forward(self, x: torch.Tensor):
                at = self.positions(x)
                return x[at]  # waits: index_host
    """,
    "what is said to be a tensor in passing": """
        from typing import cast

        def pre_update(buffer, value: torch.Tensor):
            done = cast(torch.Tensor, buffer["done"])
            return done.bool().any().item(), cast(int, buffer["count"])  # waits: item
    """,
    "a module around another, which lives where it was sent": """
        class Averaged(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

        def main(args, loader: torch.utils.data.DataLoader):
            device = "cuda" if torch.cuda.is_available() else "cpu"
            net = NETS[args.name]().to(device)
            train(Averaged(net), loader)

        def train(model, loader: torch.utils.data.DataLoader):
            device = next(model.parameters()).device
            for batch in loader:
                batch = {k: v.to(device) for k, v in batch.items()}  # waits: to_device
                model(batch).backward()
    """,
    "a scaler that is announced under the name of the module that has it": """
        from torch.amp.grad_scaler import GradScaler

        def update(scaler: GradScaler, optimizer):
            scaler.step(optimizer)  # waits: grad_scaler
            scaler.update()
    """,
    "what an object keeps for the next step": """
        class Stopper:
            def __init__(self):
                self.best = torch.tensor([float("inf")])
                self.low = None

            def check(self, loss: torch.Tensor):
                if torch.isfinite(self.best):  # waits: condition
                    loss = loss * 2
                if self.low is not None and self.low:  # waits: condition
                    loss = loss * 3
                self.best = loss
                self.low = loss < 2

        class Estimator:
            def __init__(self):
                self.net = None

            def train_step(self, x: torch.Tensor):
                hidden = self.net(x)
                return hidden[torch.randint(9, (4,))]  # waits: index_host

            def fit(self, x: torch.Tensor):
                self.net = nn.Sequential(nn.Linear(3, 3))
                return self.train_step(x)

        class Sent:
            def __init__(self):
                self.best = torch.tensor([3.0])

            def to(self, device):
                if self.best > 2:
                    self.best = self.best.to(device)  # waits: to_device
                return self
    """,
    "positions that are made on the host, and pick of what lies where nobody says": """
        def mixed(rows: torch.Tensor, times: int):
            order = torch.randint(rows.size(0), (times, 8))
            return [rows[order[i]] for i in range(times)]  # waits: index_host

        def alike(rows: torch.Tensor):
            drawn = torch.multinomial(torch.tensor([1.0 for _ in range(rows.size(0))]), 8)
            return rows[drawn]  # waits: index_host
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
