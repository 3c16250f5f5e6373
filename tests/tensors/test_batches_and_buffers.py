"""Batches sent to where the model lives, buffers that a module registers anywhere, and tensors that are unpacked anew."""

from pathlib import Path

import pytest
from tensors.marked import marks, waits

from syncscope.tensors.interpret import Project, sites

CASES = {
    "what a loop trains on is made on the host, whatever gives it": """
        def train(net, generator, nets):
            for inputs, target in tqdm(generator):
                loss = net(inputs["pose"].cuda(), target.cuda())  # waits: to_device # waits: to_device
                loss.backward()
            for i, (inputs, target) in enumerate(generator):
                net(inputs["pose"].to("cuda"), target.float()).backward()  # waits: to_device
            for i, (inputs, target) in enumerate(generator):
                shown = inputs["pose"].cuda()
            for name, part in nets.items():
                part["pose"].cuda().mean().backward()
    """,
    "dicts that a loader gives beside one another": """
        def evaluate(net, loader):
            for inputs, target in loader:
                net(inputs["pose"].cuda(), target["pose"].cuda())  # waits: to_device # waits: to_device
    """,
    "batches that an accelerator brings to the device itself": """
        from torch.utils.data import DataLoader

        def cycle(dl):
            while True:
                for data in dl:
                    yield data

        class Trainer:
            def __init__(self, accelerator, dataset):
                dl = accelerator.prepare(DataLoader(dataset, 4))
                self.dl = cycle(dl)
                self.own = cycle(DataLoader(dataset, 4))

            def step(self, device):
                return next(self.dl).to(device), next(self.own).to(device)  # waits: to_device

        def train(accelerator, model, train_loader, held_out_loader, device):
            model, loader = accelerator.prepare(model, train_loader)
            for x, y in loader:
                x = x.to(device)
            for x, y in held_out_loader:
                x = x.to(device)  # waits: to_device
            for x, y in accelerator.prepare(DataLoader(x, 4), device_placement=[False]):
                x = x.to(device)  # waits: to_device
    """,
    "shadows on the host of a model that an accelerator has brought to the device": """
        def average(accelerator, fabric, loader):
            model, other, third = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(3, 4)
            shadow = [p.detach().clone() for p in model.parameters()]
            model, loader = accelerator.prepare(model, loader)
            third = fabric.setup(third)
            for s, p in zip(shadow, model.parameters()):
                s = s.to(p.device)  # waits: to_device
            for s, p in zip(shadow, other.parameters()):
                s = s.to(p.device)
            for s, p in zip(shadow, third.parameters()):
                s = s.to(p.device)  # waits: to_device
    """,
    "a batch of a loader, sent to where a trainer's model lives": """
        class Trainer:
            def train(self, strategy, loss: torch.Tensor):
                for x, y in self.train_loader:
                    x = x.to(self.device)  # waits: to_device
                    y = y.to(strategy.device)  # waits: to_device
                    loss += x.to(loss.device).sum()
                for i, batch in enumerate(self.train_loader):
                    x = batch[0].to(self.args.device)  # waits: to_device
                    y = batch[1].to(x.device)
                    z = batch[2].to(self.device, non_blocking=True)
    """,
    "arrays of an environment, written into what lies on a device": """
        class Replay:
            def __init__(self, size, dim, device):
                self.seen = torch.zeros(size, dim, device=device)
                self.rewards = torch.zeros(size, device=device)
                self.host = torch.zeros(size, dim)

            def add(self, i, n, seen, reward, x: torch.Tensor):
                self.seen[i] = torch.as_tensor(seen)  # waits: to_device
                self.seen[i : i + n] = torch.as_tensor(seen).float()  # waits: to_device
                self.seen.copy_(torch.as_tensor(seen))  # waits: to_device
                self.rewards[i] = torch.as_tensor(reward)
                self.seen[i] = torch.as_tensor(x)
                self.host[i] = torch.as_tensor(seen)
    """,
    "a batch that a function of one is given": """
        class Trainer:
            def train_step(self, batch):
                x, y = batch
                return x.to(self.device), y.to(x.device), batch.to(self.device)  # waits: to_device

            def pooled(self, x: torch.Tensor, batch):
                return x.sum(), batch.to(self.device)  # waits: to_device

            def fit(self):
                for i, x in enumerate(self.loader):
                    self._fit_one(x)

            def _fit_one(self, x: torch.Tensor):
                return x.to(self.device)  # waits: to_device

        class Detector(nn.Module):
            def forward(self, batch, gt):
                if isinstance(batch, dict):
                    return batch["image"].to(self.device) - gt["image"].to(self.device)  # waits: to_device
                return batch["mask"].to(self.device) + batch["mask"].to(gt.device)  # waits: to_device
    """,
    "what the step of a trainer is given": """
        class Trainer:
            def train_step(self, model, images, rows, target: torch.Tensor, device):
                model.to(device)
                images, rows = images.to(self.device), rows.cuda()  # waits: to_device
                loss = model(images, rows) - target.to(device)  # waits: to_device
                return loss + target.to(images.device) + images.to(device)

            def _mixed(self, images, rows):
                return images.to(self.device), rows.cuda()  # waits: to_device

        class Lit(nn.Module):
            def training_step(self, images, rows):
                return images.to(self.device), rows.cuda()
    """,
    "the parts of what a helper takes apart, to send each of them": """
        from typing import Any

        def unpack(batch, device):
            inputs = [b.to(device) if b is not None else None for b in batch[:11]]  # waits: to_device
            beside = [b.to(inputs[0].device) for b in batch[11:]]
            return inputs, [b.to(device, non_blocking=True) for b in batch], [b.to("cpu") for b in beside]

        class Trainer:
            def update(self, inputs):
                device = next(self.model.parameters()).device
                units, labels, names = inputs
                units = units.to(device)  # waits: to_device
                labels = labels.to(device)  # waits: to_device
                return self.model(units, labels), names

            def sent(self, inputs: dict[str, Any]):
                moved = dict.fromkeys(inputs)
                for key in inputs.keys():
                    if torch.is_tensor(inputs[key]):
                        moved[key] = inputs[key].cuda()  # waits: to_device
                return moved

            def gathered(self, parts):
                device = parts[0].device
                return [part.to(device) for part in parts]

            def forward(self, inputs):
                return self.model.forward(inputs.to(self.device))

            def prepared(self, policy, inputs):
                return policy.to(self.device), inputs["x"].to(self.device)  # waits: to_device

        def send(data, device=None, dtype=None):
            if isinstance(data, dict):
                return {key: send(each, device, dtype) for key, each in data.items()}
            if isinstance(data, (list, tuple)):
                return [send(each, device, dtype) for each in data]
            if isinstance(data, torch.Tensor):
                return data.to(device, dtype)  # waits: to_device
            return data
    """,
    "what a learner of fastai lends its callbacks": """
        import numpy as np
        from fastai.callback.core import Callback

        class Sampled(Callback):
            def before_batch(self):
                chosen = np.random.permutation(self.rows)
                self.learn.xb = tuple(x[chosen] for x in self.learn.xb)  # waits: index_list
                self.rest = tuple(x[chosen] for x in self.learn.others)
    """,
    "what an iterator over a loader gives next": """
        class Replay:
            def __init__(self):
                self.buffer_iter = []

            def sample(self):
                return next(self.buffer_iter)

            def before_batch(self, strategy):
                found = self.sample()
                x, y = found[0], found[1]
                x, y = x.to(strategy.device), y.to(strategy.device)  # waits: to_device
                kept, _ = next(iter(self.loader))
                other = next(self.names)
                return x, y, kept.to(self.device), other.to(self.device)  # waits: to_device
    """,
    "what a loop over a loader sends to a device": """
        def train(model, loader, device, names):
            for x, y in loader:
                x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
                if y[0] > 3 or any(y > 3) or int(y[0]):  # waits: condition # waits: builtin # waits: int
                    return y.unique()  # waits: unique
                for label in y:
                    float(label)  # waits: float
                y.to("cpu")  # waits: cpu
                sorted(y)  # waits: builtin
                x.repeat_interleave(y)  # waits: repeat_interleave
            for name, value in names:
                value = value.to(device, non_blocking=True)
                int(value[0]), sorted(value)

        def perhaps(loader, device, cuda):
            for batch in loader:
                x, y = batch
                if cuda:
                    y = y.cuda(non_blocking=True)
                y.unique()  # waits: unique
                float(x[0])

        def one(loader, device):
            rest = iter(loader)
            x, y = next(rest)
            y = y.to(device=device, non_blocking=True).long()
            return int(y[0])  # waits: int

        def graphs(loader, device):
            for batch in loader:
                batch = batch.to(device, non_blocking=True)
                batch.y.unique()  # waits: unique
                if batch.num_graphs > 3:
                    return batch
    """,
    "buffers and parameters that another method registers": """
        class Neuron(nn.Module):
            def __init__(self, mode):
                super().__init__()
                self.gain = None
                self.add_mode(mode)

            def add_mode(self, mode):
                self.register_buffer("mode", torch.as_tensor(mode))
                self.gain = nn.Parameter(torch.ones(()))

        class Leaky(Neuron):
            def forward(self, x):
                if self.mode == 0:  # waits: condition
                    return x
                return x * float(self.gain)  # waits: float
    """,
    "an argument that is announced as a tensor and unpacked anew": """
        class Filter(nn.Module):
            def forward(self, z: torch.Tensor, batch: torch.Tensor, sizes: list[int], given=None):
                z, batch, sizes, given = self.model(z, batch, sizes)
                if given.unique():
                    return sizes.unique()
                return batch.unique()  # waits: unique
    """,
    "masks of comparisons that are multiplied, and counted": """
        def hardest(pred: torch.Tensor, gt, m):
            positive = (gt == 1) * (m == 1)
            count = positive.float().sum()
            other = (gt == 1) * m
            return pred[positive] / count, pred[other]  # waits: mask_read
    """,
    "numbers at positions of what nothing else is known": """
        def left_out(x: torch.Tensor, other):
            scores, row = {}, torch.arange(len(x), device=x.device)
            scores["a"] = compare(x, other)
            scores["a"][row, row] = -torch.inf  # waits: number_write
            scores["b"][row] = 0.0
            other[0, 1] = 0.0
            return scores
    """,
    "gradients that Fabric clips": """
        def step(fabric, model, optimizer):
            fabric.clip_gradients(model, optimizer, max_norm=1.0)  # waits: clip_grad_norm
            fabric.clip_gradients(model, optimizer, clip_val=1.0)
            fabric.clip_gradients(model, optimizer, max_norm=1.0, error_if_nonfinite=False)
            model.clip_gradients(optimizer, max_norm=1.0)
    """,
    "what an update is handed, made tensors of the device": """
        class Learner:
            def update(self, weights, **samples):
                seen = torch.as_tensor(samples["obs"], device=self.device)  # waits: tensor_literal
                done = torch.as_tensor(samples["done"].reshape(-1, 1), device=self.device)  # waits: tensor_literal
                kept = torch.as_tensor(samples["obs"].exp(), device=self.device)  # waits: tensor_literal
                size = torch.eye(samples["batch_size"]).to(self.device)  # waits: created_on_host
                ends = torch.as_tensor(self.buffer.ends(3), device=self.device)  # waits: tensor_literal
                return seen, done, kept, size, ends, torch.as_tensor(weights, device=self.device)  # waits: tensor_literal

        class Policy(nn.Module):
            def forward(self, seen, **more):
                return torch.as_tensor(more["obs"], device=self.device)
    """,
    "the batch size of a dict that is called a batch": """
        def places(self, sample):
            rows = sample["batch_size"] * self.count
            return torch.eye(self.count).reshape(rows, -1).to(self.device)  # waits: created_on_host
    """,
    "what torch.Tensor makes, whatever it is given": """
        def moved(x: torch.Tensor, other, device):
            old = torch.Tensor(x).to(x.device)  # waits: created_on_host
            return old, torch.cuda.FloatTensor(x).to(device)
    """,
    "a batch of an iterator that is kept, converted by a method": """
        class Agent:
            def fit(self):
                try:
                    data = next(self.trainIter)
                except StopIteration:
                    self.trainIter = iter(self.train_loader)
                    data = next(self.trainIter)
                rest = next(self.trainIter_unlab)
                x, y = self.converted(data["image"]), rest["image"].float()
                x = x.to(self.device)  # waits: to_device
                return x, y.to(self.device), x.float().to(self.device)  # waits: to_device

            def converted(self, x):
                return x.float() if self.single else x.double()

        class Other:
            def start(self):
                self.rows = iter(self.test_loader)

            def fit(self):
                return next(self.rows)["image"].to(self.device)  # waits: to_device

            def fit_once(self):
                return next(self.columns)["image"].to(self.device)
    """,
    "a batch whose parts are sent in place": """
        from torch.utils.data import DataLoader

        class Trainer:
            def __init__(self, rows):
                self.loader = DataLoader(rows, batch_size=4)

            def fit(self):
                for batch in self.loader:
                    for key, part in batch.items():
                        if torch.is_tensor(part):
                            batch[key] = part.to(self.device)  # waits: to_device
                    self.step(batch)

            def step(self, batch):
                return batch["mask"].sum().item(), batch["y"].unique()  # waits: item # waits: unique

            def fit_all(self):
                for batch in self.loader:
                    print(batch["x"].sum().item())
                    batch = self.moved(batch)
                    print(batch["x"].sum().item())  # waits: item

            def moved(self, batch):
                for key in batch:
                    batch[key] = batch[key].cuda()  # waits: to_device
                return batch

            def fit_two(self):
                for batch in self.loader:
                    self.send(batch)
                    print(batch["x"].sum().item())  # waits: item

            def send(self, batch):
                for key, part in batch.items():
                    if torch.is_tensor(part):
                        batch[key] = part.to(self.device)  # waits: to_device

            def fit_one(self):
                for batch in self.loader:
                    if self.sends:
                        batch["x"] = batch["x"].cuda()  # waits: to_device
                    print(batch["x"].sum().item(), batch["y"].sum().item())  # waits: item
    """,
    "rows of each part of a batch, sent by a step that takes them one after the other": """
        def run_step(self, batch, more, rows):
            for i in range(0, len(batch), 4):
                parts = {key: part[i : i + 4].to(self.device) for key, part in more.items()}  # waits: to_device
                first = {key: part[0].to(self.device) for key, part in rows.items()}  # waits: to_device
                self.model(parts, first).backward()
    """,
    "lists of positions that a sampler of batches gives": """
        from torch.utils.data import BatchSampler, SubsetRandomSampler

        class Rollouts(nn.Module):
            def batches(self, seen: torch.Tensor, n):
                for rows in BatchSampler(SubsetRandomSampler(range(n)), 4, drop_last=True):
                    yield seen[rows]  # waits: index_list
    """,
    "made on the host and handed on as it is": """
        def times(x, device="cpu"):
            return x * torch.arange(0, 4).detach().to(device)  # waits: created_on_host
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_waits_where_the_marks_say(code: str) -> None:
    assert waits(code, confidence=2) == marks(code)


BASE = """
import torch

class Spiking(torch.nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.set(mode)

    def set(self, mode):
        self.register_buffer("mode", torch.as_tensor(mode))
"""
LEAKY = """
import torch
from .base import Spiking

class Leaky(Spiking):
    def forward(self, x):
        if self.mode == 0:
            return x
        return 2 * x
"""


def test_a_buffer_of_a_base_class_in_another_file_is_one(tmp_path: Path) -> None:
    for name, text in {"__init__": "", "base": BASE, "leaky": LEAKY}.items():
        (tmp_path / f"{name}.py").write_text(text)
    found = sites(LEAKY.encode(), str(tmp_path / "leaky.py"), Project())
    assert [(site.place.line, site.op, site.confidence > 1) for site in found] == [(7, "condition", True)]
