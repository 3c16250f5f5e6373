"""Loaders behind what logs them, losses in a dict, buffers: `# waits: op` marks each line that is shown, and no other."""

import pytest
from tensors.marked import marks, waits

CASES = {
    "parts of a dict in a batch of a loader, sent one by one": """
        class Trainer:
            def train(self, model):
                for i, batch_data in enumerate(self.dataloader_train):
                    for key in batch_data:
                        for name, batch in batch_data[key].items():
                            batch_data[key][name] = batch.to(self.device)  # waits: to_device
                for batch in self.train_loader:
                    for name, value in batch["inputs"].items():
                        batch["inputs"][name] = value.to(self.device)  # waits: to_device
                    for value in batch["labels"].values():
                        value = value.cuda()  # waits: to_device
                    lens = batch["lens"].get("x").to(self.device)  # waits: to_device
                    model(batch, {k: v.to(self.device) for k, v in self.parts.items()}, lens)
    """,
    "parts of a batch that may be lists": """
        from torch.utils.data import DataLoader

        class Trainer:
            def train(self, loader: DataLoader):
                for inputs, targets in loader:
                    targets = {k: self.sent(v, self.device) for k, v in targets.items()}
                    self.model(inputs, targets).backward()

            def sent(self, part: torch.Tensor | list[torch.Tensor], device):
                if torch.is_tensor(part):
                    return part.to(device)  # waits: to_device
                return [each.to(device) for each in part]  # waits: to_device
    """,
    "entries of the state of a trainer that are sent or copied, and what is handed on": """
        class Trainer:
            def load(self, state):
                state[keys.X], state[keys.Y] = next(self.batches)
                state[keys.X] = state[keys.X].to(self.device)  # waits: to_device
                state[keys.Y] = state[keys.Y].to(state["device"])  # waits: to_device
                state[keys.Z] = state[keys.X].to(self.device)
                state[keys.MODEL] = state[keys.MODEL].to(self.device)
                state[keys.W] = state[keys.W].to(self.x.device)

            def measure(self, state, model, idxes):
                model = self.wrapped(model.cpu())
                self.buffer.update(idxes.cpu())  # waits: cpu
                idxes.cpu()
                return state[keys.Y_TRUE].cpu(), state["model"].cpu(), self.parts[0].cpu()  # waits: cpu

        class Model(nn.Module):
            def shift(self, state):
                state["x"] = state["x"].to(self.device)
    """,
    "rows that an array picks out of something, which later meets a tensor": """
        import numpy as np

        class Agent:
            def update(self, q, target: torch.Tensor):
                advantages, names = self.advantages.reshape(-1), self.names()
                order = np.arange(30)
                for start in range(3):
                    at = order[start : start + 2]
                    name = names[at]
                    picked = advantages[at]  # waits: index_host
                    if self.norm:
                        picked = (picked - picked.mean()) / (picked.std() + 1)
                    loss = (-picked * target.exp()).mean()
                    loss.backward()
    """,
    "a batch, in a step that is known by its backward pass": """
        class Detector:
            def training_forward(self, batch_data, weights):
                x = batch_data
                x = x.to(self.device)  # waits: to_device
                loss = self.model(x, weights.to(self.device))  # waits: to_device
                loss.backward()

            def evaluating_forward(self, batch_data, weights):
                x = batch_data
                return self.model(x.to(self.device), weights.to(self.device))  # waits: to_device

            def all_of_them(self, batch_data, weights):
                weights = weights.to(self.device)  # waits: to_device
                for x in batch_data:
                    self.model(x, weights).backward()
    """,
    "what an environment gives, made tensors of": """
        import numpy as np

        class Agent:
            def learn(self, n):
                obs, _ = self.env.reset()
                for _ in range(n):
                    action = self.actor(torch.as_tensor(obs).float().to(self.device))  # waits: created_on_host
                    after, reward, ended, cut, _ = self.env.step(action)
                    reward = torch.as_tensor(reward, device=self.device)  # waits: tensor_literal
                    ended = np.logical_or(ended, cut)
                    ended = torch.as_tensor(ended, device=self.device)  # waits: tensor_literal
                    after = after.to(self.device)
                    other = torch.as_tensor(self.other.step(action), device=self.device)  # waits: tensor_literal
                    obs = after
    """,
    "an order that is drawn on the host, of what was made where a device is named": """
        def drawn(n, low, high, device):
            at = torch.linspace(low, high, n, device=device)[:-1]
            moved = torch.add(at, torch.rand(n, device=device))
            return moved[torch.randperm(n)], torch.linspace(low, high, n)[torch.randperm(n)]  # waits: index_host
    """,
    "an order that is drawn on the host, of a prediction and its target": """
        def list_loss(y_pred, y_true):
            order = torch.randperm(y_pred.shape[-1])
            return y_pred[:, order].float() - y_true.float()[:, order]  # waits: index_host

        def shuffled(y_pred):
            return y_pred.float()[:, torch.randperm(y_pred.shape[-1])]  # waits: index_host
    """,
    "an order of as many as a batch has, by which it is mixed with itself": """
        class Mixup:
            def on_sample(self, state):
                order = torch.randperm(state["x"].size(0))
                x = state["x"] - state["x"].view(len(order), -1).mean(1)
                state["x"] = x * 0.5 + x[order] * 0.5  # waits: index_host

        def shuffled(self, count):
            rows = self.rows.abs()
            return rows[torch.randperm(count)]  # waits: index_host
    """,
    "a data set that keeps its tensors where a device is named": """
        class OfflineDataset(torch.utils.data.Dataset):
            def __init__(self, data, device, fits):
                if fits:
                    self.seen = torch.from_numpy(data["seen"]).to(device=device)  # waits: created_on_host
                else:
                    self.seen = torch.Tensor(data["seen"])

            def sample(self):
                return self.seen[torch.randint(0, len(self), (32,))]  # waits: index_host

        class FileDataset(torch.utils.data.Dataset):
            def __init__(self, data, device):
                self.seen, self.device = torch.from_numpy(data["seen"]), device

            def sample(self):
                return self.seen[torch.randint(0, len(self), (32,))]
    """,
    "what numpy says of its own types": """
        import numpy as np

        def clamped(x, kind):
            low, most = np.finfo(np.float32).eps.item(), np.iinfo(kind).max.item()
            return x.exp().clamp(low, most), x.exp().max().item()  # waits: item
    """,
    "a network that the end of its file shows at work, on the host": """
        class Checked(nn.Module):
            def forward(self, x):
                if torch.isnan(x).any():  # waits: condition
                    raise ValueError("nan")
                return x[x > 0]  # waits: mask_read

        def scaled(x):
            return x / x.sum().item()

        if __name__ == "__main__":
            Checked()(torch.randn(4, 8))
            scaled(torch.randn(4, 8))
    """,
    "what picks rows of a data set, whatever it is called": """
        class Balanced(torch.utils.data.Sampler):
            def __init__(self, weights, count, seed):
                self.weights, self.count = torch.as_tensor(weights), count
                self.generator = torch.Generator().manual_seed(seed)

            def __iter__(self):
                drawn = torch.multinomial(self.weights, self.count, True, generator=self.generator)
                yield from drawn.tolist()

        class OfEach(Balanced):
            def first(self, kind):
                return (self.weights == kind).nonzero()[0].item(), self.weights.cpu()

        class Anchors:
            def __init__(self, weights):
                self.weights = torch.as_tensor(weights)

            def __iter__(self):
                yield from torch.multinomial(self.weights, 3).tolist()  # waits: tolist  # waits: ocl_fallback
    """,
    "a loader behind what logs it, shows how far it is, or was named": """
        class Progress:
            def __init__(self, name, over):
                self.over = over

            def __iter__(self):
                self.left = iter(self.over)
                return self

            def __next__(self):
                return next(self.left)

        class Trainer:
            def __init__(self, loaders):
                self.batches = iter(loaders["train"])
                self.numbers = iter(range(9))

            def logged(self, log, device):
                for x, y in log.every(10, self.loaders["train"]):
                    x = x.to(device)  # waits: to_device
                for n in log.every(10, range(len(self.loaders["train"]))):
                    n.to(device)

            def shown(self, device):
                loader = self.loaders["train"]
                progress = Progress("train", loader)
                for step, x in enumerate(progress):
                    x = x.to(device)  # waits: to_device

            def one_more(self):
                batch = next(self.batches)
                number = next(self.numbers)
                return batch["x"].to(self.device), number.to(self.device)  # waits: to_device
    """,
    "losses in a dict": """
        def step(model, batch, meter, weights):
            losses = model(batch)
            for name, value in losses.items():
                meter.add(name, float(value))  # waits: float
            for name, value in weights.items():
                meter.add(name, float(value))
            total = float(sum(losses.values()))  # waits: float
            rank = int(losses.get("rank"))  # waits: int
            losses = {"plain": 1.0}
            return total + rank + sum(float(each) for each in losses.values())
    """,
    "an item of what nobody knows, beside other arrays": """
        import numpy as np

        def step(model, batch):
            out, extra = model(batch)
            shown = (out * extra).sum().item()  # waits: item
            return out.item() + shown + np.float32(1).item()  # waits: item
    """,
    "what a buffer gives": """
        def step(self, device, cfg):
            state, action = self.replay_buffer.sample(32)
            state = state.to(device)  # waits: to_device
            other = self.policy.sample(32)
            return state, other.to(device)
    """,
    "what was made on the host, sent to a device that has no name of its own": """
        def table(n, device):
            at = torch.arange(n) / n
            scaled = at * 2
            return scaled.to(device)  # waits: to_device

        def kept(n, device=None):
            scaled = torch.arange(n) / n
            return scaled.to(device)
    """,
    "positions of the host, where a function asks tensors where they live": """
        def chosen(x: torch.Tensor, n: int):
            total = torch.zeros(n, device=x.device)
            t = torch.arange(n)
            return total + x[t, ..., 0]  # waits: index_host

        def shuffled(x: torch.Tensor, n: int):
            t = torch.eye(n) > 0
            return x[t]
    """,
    "what a function was given twice, most often": """
        def covariance(x1: torch.Tensor, x2: torch.Tensor, grid: torch.Tensor):
            if torch.equal(x1, x2):
                return x1
            return x1 if torch.equal(x1, grid) else grid  # waits: equal
    """,
    "what a tensor is made of anew, most often of numbers": """
        class Loss(nn.Module):
            def forward(self, x, weight, points=range(-2, 2)):
                scaled = torch.tensor(weight, device=x.device)  # waits: tensor_literal
                return x * scaled * torch.as_tensor(weight, device=x.device)
    """,
    "what a method of an object moves and keeps": """
        class Counts:
            def __init__(self, n):
                self.labels = torch.zeros(n)
                self.kept = torch.zeros(n)

            def numbers(self):
                return self.labels.tolist(), self.kept.tolist()  # waits: tolist

            def add(self, x: torch.Tensor):
                if not self.labels.is_cuda:
                    self.labels = self.labels.to(x.device)  # waits: to_device
                return self.labels + x
    """,
    "parts of an object that has its own `to`": """
        class Graph:
            def apply(self, change):
                return Graph({key: change(value) for key, value in self.parts.items()})

            def to(self, device):
                return self.apply(lambda x: x.to(device))  # waits: to_device

            def changed(self, device):
                return self.apply(lambda x: x.to(device))
    """,
    "what a helper makes a tensor of, whatever it is given, and what is converted behind it": """
        def to_tensor(x):
            if isinstance(x, torch.Tensor):
                return x
            if isinstance(x, list) and isinstance(x[0], torch.Tensor):
                return torch.stack(x)
            return torch.tensor(x)

        class Agent:
            def learn(self, drawn):
                rewards = to_tensor(drawn["reward"]).float().to(self.device)  # waits: to_device
                ends = to_tensor(drawn["done"]).type(torch.int).to(self.device).unsqueeze(1)  # waits: to_device
                seen = to_tensor(drawn["seen"])
                seen = seen.unsqueeze(0).to(self.device)  # waits: to_device
                here = torch.ones(3, device="cuda")
                near = to_tensor(here).float().to(self.device)
                kept = to_tensor(drawn["kept"]).float().to("cpu")
                return rewards, ends, seen, near, kept
    """,
    "what a network gives whose kind is not known, where it is used as an array": """
        import numpy as np

        class Twin(nn.Module):
            def __init__(self, kind, n: int):
                super().__init__()
                self.one = kind(n)
                self.two = kind(n)

            def forward(self, x, y):
                return self.one(x, y), self.two(x, y)

        class Agent:
            def __init__(self, kind):
                self.twin = Twin(kind, 3)
                self.critic = kind(3)
                self.table = kind(3)

            def training_step(self, x, y):
                one, two = self.twin(x, y)
                self.seen["one"] = float(one.mean())  # waits: float
                worth, known = self.critic(x, y), self.table(x, y)
                self.seen["worth"] = np.array(float(worth.mean()))  # waits: float
                self.seen["known"] = float(known.mean())
                self.seen["other"] = float(self.actor.encoder(x).mean())
    """,
    "what goes to a device that is the host's where nobody names one, and that a caller names": """
        def waves(n: int, device="cpu"):
            pos = 1.0 * torch.arange(n).view(-1, 1)
            return pos.to(device)  # waits: to_device

        def steps(n: int, device="cpu"):
            pos = 1.0 * torch.arange(n).view(-1, 1)
            return pos.to(device)

        def embedded(x: torch.Tensor):
            return x + waves(x.shape[0], device=x.device) + steps(x.shape[0])
    """,
    "what is announced as a tensor or an array, though its file passes tensors": """
        import numpy as np

        class Model:
            def moved(self, actions: torch.Tensor | np.ndarray):
                if isinstance(actions, np.ndarray):
                    actions = torch.from_numpy(actions).to(self.device)  # waits: created_on_host
                return self.net(actions)

            def all(self, actions: torch.Tensor):
                return self.moved(actions)
    """,
    "parts that another object is given": """
        class Points:
            def to(self, device, non_blocking=False):
                new = self.empty(device)
                new.points = self.points.to(device, non_blocking=non_blocking)  # waits: to_device
                if self.normals is not None:
                    new.normals = self.normals.to(device)  # waits: to_device
                return new

        class Kept:
            def to(self, device):
                self.points = self.points.to(device)
                return self
    """,
    "a list that is drawn, as an index": """
        import random

        def pairs(z: torch.Tensor, rows, n: int):
            one, two = random.choices(rows, k=n), random.sample(range(9), n)
            first = random.choice(rows)
            return z[one] - z[two], z[first]  # waits: index_list
    """,
    "places of a list that are filled later": """
        class Octree:
            def __init__(self, depth: int):
                self.children = [None] * depth
                self.masks = [None] * depth

            def mask(self, d: int):
                if self.masks[d] is None:
                    self.masks[d] = self.children[d] >= 0
                return self.masks[d]

            def index(self, d: int):
                mask = self.mask(d)
                return torch.arange(mask.shape[0], device=mask.device)[mask]  # waits: mask_read
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_each_is_told_by_what_is_around_it(code: str) -> None:
    assert waits(code, 2) == marks(code)
