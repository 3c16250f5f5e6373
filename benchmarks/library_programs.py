"""Five programs as the examples of PyTorch, transformers, torchvision, Lightning and PyG have them, each with so many steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from changed_loops import fewer_launches, fused, graphs
from changed_loops.steps import Make

Run = Callable[[int], object]  # so many steps


def classifier(device: torch.device) -> Run:
    """PyTorch's own example: a network for digits, its loader, a scheduler, and a line that logs."""
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    net = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25)),
        *(nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(1)),
    ).to(device)
    loader = DataLoader(TensorDataset(torch.randn(2048, 1, 28, 28), torch.randint(0, 10, (2048,))), 64, shuffle=True)
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)

    def run(steps: int) -> None:
        net.train()
        for number, (data, target) in enumerate(loader):
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(net(data), target)
            loss.backward()
            optimizer.step()
            if number % 5 == 0:
                loss.item()
            if number == steps:
                break

    return run


def gpt2(device: torch.device) -> Run:
    """transformers' Trainer with a small GPT-2 that logs every step."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=128, n_embd=256, n_layer=4, n_head=4))
    rows = [{"input_ids": (ids := torch.randint(0, 1000, (64,))), "labels": ids} for _ in range(512)]

    def run(steps: int) -> None:
        given = TrainingArguments(
            output_dir="/tmp/trainer",
            max_steps=steps,
            per_device_train_batch_size=8,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=device.type == "cpu",
        )
        Trainer(model, given, train_dataset=rows).train()

    return run


def detection(device: torch.device) -> Run:
    """torchvision's detector in its reference loop."""
    from torchvision.models import detection as zoo

    model = zoo.fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None, num_classes=5, min_size=160)
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    boxes = torch.tensor([[10.0, 10.0, 90.0, 90.0], [30.0, 40.0, 120.0, 140.0]])

    def run(steps: int) -> None:
        for _ in range(steps):
            images = [torch.rand(3, 160, 160).to(device) for _ in range(2)]
            targets = [{"boxes": boxes.to(device), "labels": torch.tensor([1, 2]).to(device)} for _ in images]
            losses = sum(model(images, targets).values())
            optimizer.zero_grad()
            losses.backward()
            optimizer.step()

    return run


def lightning(device: torch.device) -> Run:
    """A LightningModule that logs."""
    import logging

    import pytorch_lightning  # type: ignore[import-not-found]
    from torch.utils.data import DataLoader, TensorDataset

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    class Net(pytorch_lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))

        def training_step(self, batch: Any, number: int) -> Any:
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    model = Net()
    loader = DataLoader(TensorDataset(torch.randn(1024, 64), torch.randint(0, 10, (1024,))), 32)

    def run(steps: int) -> None:
        quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
        kind = {"cuda": "gpu"}.get(device.type, device.type)
        pytorch_lightning.Trainer(max_steps=steps, accelerator=kind, devices=1, gradient_clip_val=1.0, **quiet).fit(
            model, loader
        )

    return run


def graph(device: torch.device) -> Run:
    """torch_geometric's graph network, with a mask of what is trained."""
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(64, 64), GCNConv(64, 7)

        def forward(self, x: Any, edges: Any) -> Any:
            x = self.first(x, edges).relu()
            return self.second(torch.nn.functional.dropout(x, training=self.training), edges)

    model = Net().to(device)
    x, edges = torch.randn(2000, 64, device=device), torch.randint(0, 2000, (2, 10000), device=device)
    y, mask = torch.randint(0, 7, (2000,), device=device), torch.rand(2000, device=device) > 0.5
    optimizer = torch.optim.Adam(model.parameters())

    def run(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            out = model(x, edges)
            loss = torch.nn.functional.cross_entropy(out[mask], y[mask])
            loss.backward()
            optimizer.step()

    return run


def repeated(make: Make) -> Callable[[torch.device], Run]:
    """A loop of `changed_loops` as written, as a program."""

    def made(device: torch.device) -> Run:
        step = make(device, False)

        def run(steps: int) -> None:
            for _ in range(steps):
                step()

        return run

    return made


PROGRAMS = {make.__name__: make for make in (classifier, gpt2, detection, lightning, graph)}
EXAMPLES = {
    "vae": repeated(fused.autoencoder),
    "dcgan": repeated(fused.adversaries),
    "super_resolution": repeated(fused.super_resolution),
    "fast_neural_style": repeated(graphs.style),
    "time_sequence_prediction": repeated(graphs.sines),
    "word_language_model": repeated(fewer_launches.word_model),
    "dqn": repeated(fewer_launches.q_learning),
}
"""Of PyTorch's examples and its tutorial: plain loops, which any device takes."""
