"""What a file passes on: to objects that keep it, to functions that announce a number, or by one arm of a branch."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "what is announced as a number, and is none": """
        class Scaled:
            def rms(self, x: torch.Tensor) -> float:
                return x.norm(2) / x.numel() ** 0.5

            def length(self, x: torch.Tensor) -> float:
                return x.norm(2).item()  # waits: item

            def step(self, update: torch.Tensor):
                update.div_(max(1.0, self.rms(update)))  # waits: builtin
                update.div_(max(1.0, self.length(update)))
    """,
    "samples that a step has put together": """
        def collate_samples(samples):
            return torch.stack([each.data for each in samples]), torch.stack([each.label for each in samples])

        def stacked(samples):
            return torch.stack([each.data for each in samples])

        def training_step(self, samples, batch_idx):
            x, y = collate_samples(samples)
            x, rest = x.to(self.device), stacked(samples).to(self.device)  # waits: to_device
            return self.net(x) + rest
    """,
    "a test beside what it tests": """
        def scatter(rows, labels):
            states = torch.unique(labels)  # waits: unique
            return [rows[torch.nonzero(labels == each).view(-1)] for each in states]  # waits: nonzero

        def halves(rows, labels):
            return scatter(rows, labels)

        def evaluated(labels):
            return torch.unique(labels)

        def test_scatter():
            assert scatter(torch.rand(4, 2), torch.zeros(4))
            assert halves(torch.rand(4, 2), torch.zeros(4))

        def test_epoch(rows):
            return evaluated(torch.zeros(4))

        if __name__ == "__main__":
            test_scatter()
    """,
    "a method that is left to other classes": """
        class Wrapper:
            def on_step(self, batch):
                return self.step(batch)

            def step(self, batch):
                raise NotImplementedError

        def fit(wrapper: Wrapper, batches, optimizer):
            for batch in batches:
                loss = wrapper.on_step(batch)
                loss.backward()
                optimizer.step()
                print(loss.item())  # waits: item
    """,
    "tensors and lists that an object is built with": """
        class Normalize(nn.Module):
            def __init__(self, mean, std: torch.Tensor, scale):
                super().__init__()
                self.mean, self.std = mean, std
                self.register_buffer("scale", scale)

            def forward(self, x):
                mean = torch.as_tensor(self.mean, device=x.device)  # waits: tensor_literal
                return (x - mean) / self.std.to(x.device) * self.scale.to(x.device)  # waits: to_device

        class Weighted:
            def __init__(self, weights, moved: torch.Tensor):
                self.weights = weights
                self.moved = moved

            def loss(self, x: torch.Tensor):
                if self.weights.sum() > 0:
                    return x * self.weights.to(x.device)  # waits: to_device
                return self.moved.to(x.device)

        class Halved(Weighted):
            def half(self, x: torch.Tensor):
                return x * self.weights.to(x.device) / 2  # waits: to_device

        class Net(nn.Module):
            def __init__(self, device):
                super().__init__()
                self.norm = Normalize([0.5, 0.4], std=torch.tensor([0.2, 0.3]), scale=torch.ones(2))
                self.loss = Halved(torch.ones(3), torch.ones(3, device=device))
    """,
    "an object that is built of others' tensors": """
        class Weighted:
            def __init__(self, weights):
                self.weights = weights

            def loss(self, x: torch.Tensor):
                return x * self.weights.to(x.device)

        def build(weights: torch.Tensor):
            return Weighted(weights)
    """,
    "a tensor in place of a number that is announced": """
        def mask_of(size: int, lengths: torch.Tensor):
            return torch.arange(size, device=lengths.device) < lengths[:, None]  # waits: size

        def other(size: int, lengths: torch.Tensor):
            return torch.arange(size, device=lengths.device) < lengths[:, None]

        def step(x: torch.Tensor, lengths: torch.Tensor):
            return x * mask_of(lengths.max(), lengths) * other(x.shape[1], lengths)
    """,
    "tensors in a tuple of numbers that is announced": """
        class Conv(nn.Module):
            def padded(self, x: torch.Tensor, sides: tuple[int, int]):
                left, right = sides
                if left > 0:
                    return nn.functional.pad(x, (left, 0))
                return x if max(left, right) < 3 else x[..., 1:]  # waits: builtin  # waits: condition

            def forward(self, x, lengths):
                return self.padded(x, (2, lengths.sum()))
    """,
    "given where a tensor is announced": """
        def summed(x: torch.Tensor, index: torch.Tensor, size: int):
            return x.new_zeros(size).index_add(0, index, x)

        class Pool(nn.Module):
            def summed(self, x: torch.Tensor, size: int):
                return summed(x, x.long(), size)

            def forward(self, batch, names):
                index, size = batch["index"], batch["size"]
                count, most = int(index[-1]) + 1, int(size[-1]) + 1  # waits: int
                return summed(batch["x"], index, count) + self.summed(batch["y"], size) + most
    """,
    "numbers given to what is called like a tensor": """
        def exists(x):
            return x is not None

        def either(x, y):
            return not (x ^ y)

        def guided(scale: float, label=None):
            assert either(exists(label), scale > 0)
            return scale
    """,
    "another value than others give": """
        def default(value, other):
            return other if value is None else value

        def loss(x: torch.Tensor, noise=None, strength=None):
            noise = default(x, noise)
            if default(strength, 0.5) > 0:
                return x + noise
            if default(x, 0.5).sum() > 0:  # waits: condition
                return x
    """,
    "a dict that an object keeps": """
        class Batch:
            def __init__(self, rows: dict[str, torch.Tensor]):
                self.rows = {}
                for name, row in rows.items():
                    self.rows[name] = row.exp()

            def first(self, name):
                return self.rows[name].sum().item()  # waits: item
    """,
    "what a module gives that may be a dict": """
        class Calculator:
            def __init__(self, model: nn.Module, names: list[str]):
                self.model, self.names = model, names

            def read(self, x: torch.Tensor, name):
                found = self.model(x)
                return name in found
    """,
    "fields that an object is given where it is made, asked for before that is seen": """
        from dataclasses import dataclass
        from typing import NamedTuple

        class Pairs(NamedTuple):
            where: tuple[torch.Tensor, torch.Tensor]
            labels: torch.Tensor

        @dataclass
        class Order:
            rows: torch.Tensor
            kept: torch.Tensor

        class Criterion(nn.Module):
            def boxes(self, outputs: torch.Tensor, pairs: Pairs | None = None):
                where = self.where(outputs) if pairs is None else pairs.where
                return outputs[where]  # waits: index_host

            def pair(self, outputs: torch.Tensor) -> Pairs:
                return Pairs(where=self.where(outputs), labels=outputs)

            def where(self, outputs):
                return torch.randperm(len(outputs)), torch.randperm(len(outputs))

            def unpacked(self, outputs: torch.Tensor, pairs: list[Pairs]):
                for pair in pairs:
                    where, labels = pair
                    one = outputs[pair.where]  # waits: index_host
                    two = outputs[where]  # waits: index_host
                    three = outputs[pair[0]]  # waits: index_host
                    if labels.any():  # waits: condition
                        return one, two, three

            def shuffled(self, outputs: torch.Tensor, order: Order):
                kept = outputs[order.kept]
                return kept + outputs[order.rows]  # waits: index_host

        def made(outputs: torch.Tensor, device: torch.device):
            return Order(torch.randperm(len(outputs)), kept=torch.randperm(len(outputs), device=device))
    """,
    "what a batch was made with, and sends to the device itself": """
        from typing import NamedTuple

        class Graphs:
            def __init__(self, many: list[int]):
                self.batch = torch.tensor(many)
                self.sizes = torch.tensor(many)

            def to(self, device):
                self.batch = self.batch.to(device)  # waits: to_device
                return self

        class Kept:
            def __init__(self, many: list[int]):
                self.sizes = torch.tensor(many)

        class Batch(NamedTuple):
            graphs: Graphs
            kept: Kept

        def step(batch: Batch):
            graphs, kept = batch
            if kept.sizes.any():
                return graphs.batch[-1].item()  # waits: item
    """,
    "what a function of autograd keeps for its backward pass": """
        import math

        class Kept(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale, c):
                ctx.save_for_backward(x, scale)
                ctx.c = torch.tensor([c], device=x.device)  # waits: tensor_literal
                ctx.many = 3
                return x * scale

            @staticmethod
            def backward(ctx, grad):
                x, scale = ctx.saved_tensors
                for _ in range(ctx.many):
                    grad = grad * scale
                if scale.max() > 1:  # waits: condition
                    return grad, None, None
                return grad * math.sqrt(ctx.c), None, None  # waits: math

        class Apart(torch.autograd.Function):
            @staticmethod
            def forward(x, many):
                return x.exp()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.found = output.amax()

            @staticmethod
            def backward(ctx, grad):
                return grad * float(ctx.found), None  # waits: float

        def applied(x: torch.Tensor, scale: torch.Tensor, model):
            found = model.apply(x)
            total = Kept.apply(x, scale, 2.0)
            return found if total.isnan().any() else float(Apart.apply(total, 3))  # waits: condition  # waits: float
    """,
    "what a function of autograd is given, and what has its name later": """
        class Root(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, inverse, root):
                ctx.inverse = inverse
                root = root.exp()
                ctx.root = root
                inverse = torch.empty(0, device=x.device)
                if ctx.inverse:
                    inverse = x / root.unsqueeze(-2)
                inverse = inverse.squeeze(0) if inverse.numel() else inverse
                if inverse.sum():  # waits: condition
                    return inverse
                return root

            @staticmethod
            def backward(ctx, grad):
                inverse = grad.clone().unsqueeze(0)
                if not ctx.inverse:
                    inverse = inverse / 2
                return (inverse if ctx.root else grad), None, None  # waits: condition

        def rooted(factory, x: torch.Tensor):
            return Root.apply(factory(x), True, x), Root.apply(x, factory.inverse, x)

        def anew(scale, shift, x: torch.Tensor):
            if scale:
                x = x * 2
            scale = x.mean()
            if shift:  # waits: condition
                x = x + shift.unsqueeze(0)
            shift = x.mean()
            return x * scale.unsqueeze(0) + shift.unsqueeze(0)
    """,
    "made on the host by one arm": """
        def weighted(x: torch.Tensor, device, quick):
            if quick:
                weights, moved = torch.ones(3), torch.ones(3, device=device)
            else:
                weights, moved = torch.rand(3, device=device), torch.rand(3, device=device)
            return x * weights.to(x.device) * moved.to(x.device)  # waits: to_device
    """,
    "made on the host by one arm, and by the other nobody knows where": """
        class Trainer:
            def loss(self, x):
                one = self.contrast(x) if self.kind in ("contrast", "both") else torch.tensor(0.0)
                two = self.denoise(x) if self.kind in ("denoise", "both") else torch.tensor(0.0)
                return one + two

            def train_step(self, x):
                loss = self.loss(x)
                loss.backward()
                if not (self.training and torch.rand([]) < self.left_out):
                    return loss.item()  # waits: item
    """,
    "made on the host, unless a call names something beside which it is to lie": """
        def mask_of(lengths, like=None, dim=-1):
            places = torch.arange(0, 9).unsqueeze(0)
            mask = places >= places.new(lengths).unsqueeze(-1)
            if like is not None:
                at = tuple(slice(None) if i in (0, dim) else None for i in range(like.dim()))
                mask = mask[at].expand_as(like).to(like.device)  # waits: to_device
            return mask

        class Encoder(nn.Module):
            def forward(self, x: torch.Tensor, lengths: torch.Tensor):
                mask = (~mask_of(lengths)[:, None, :]).to(x.device)  # waits: to_device
                return x * mask * mask_of(lengths, x).to(x.device)
    """,
    "what as_tensor is given, which may be a number or a tensor": """
        def summed(value: "np.ndarray | torch.Tensor | float") -> torch.Tensor:
            if alone():
                return torch.as_tensor(value, dtype=torch.float32)
            return torch.as_tensor(value) * 2

        def averaged(value: "np.ndarray | torch.Tensor | float") -> torch.Tensor:
            return summed(value) / 2

        def update(self, old, seen):
            kl = torch.distributions.kl_divergence(old, self.actor(seen)).mean()
            kl = averaged(kl)
            print(kl.item())  # waits: item
            return averaged(3.0).item(), summed(len(seen)).item()
    """,
    "what a dict is asked for, and a tensor in its place": """
        def note(self, reward: torch.Tensor, info: dict, name, held):
            self.total += info.get("original", reward).cpu()  # waits: cpu
            self.host += info.get("original", torch.zeros(1)).cpu()
            return held.pop("seen", reward).tolist(), info.get(name, 0).cpu()  # waits: tolist
    """,
    "lists of columns that a module keeps": """
        class Columns(nn.Module):
            def __init__(self, column: dict[str, int], names: list[str], rows):
                super().__init__()
                self.chosen = [column[name] for name in names]
                self.first = [0, 1]
                self.rows = rows

            def forward(self, x: torch.Tensor):
                x = x[:, self.chosen]  # waits: index_list
                return x[:, self.first] + x[:, self.rows]  # waits: index_list
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)
