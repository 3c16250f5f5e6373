"""What is trained: a network by its name with data and loss, or a function of the user's."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from syncscope.bench import OWN, models
from syncscope.errors import UserError

# Those that pytorch_dlprim publishes figures of, and what has come since.
LIST = [
    *"""
    alexnet resnet18 resnet50 vgg16 densenet161 googlenet squeezenet1_0 inception_v3 shufflenet_v2_x1_0 mobilenet_v2
    mobilenet_v3_large mobilenet_v3_small resnext50_32x4d wide_resnet50_2 mnasnet1_0 efficientnet_b0 efficientnet_b4
    regnet_y_400mf convnext_small vit_b_16
    """.split(),
    *OWN,
]
PIXELS = 224
CONTEXT = 256  # words of a text
_declared: list[torch.library.Library] = []


@dataclass
class Task:
    """A network on a device, and one batch of data that it is trained on over and over."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    loss: Callable[[Tensor], Tensor]
    optimizer: torch.optim.Optimizer
    half: torch.dtype | None = None  # what a region of autocast casts to, if there is one

    def __post_init__(self) -> None:
        kind = self.inputs[0].device.type
        self.scaler = torch.amp.GradScaler(kind, enabled=self.half is torch.float16)
        self.region = torch.autocast(kind, self.half or torch.bfloat16, enabled=self.half is not None)

    def forward(self) -> Tensor:
        """The loss."""
        with self.region:
            return self.loss(self.model(*self.inputs))

    def backward(self, loss: Tensor) -> None:
        """The gradients of a loss."""
        self.scaler.scale(loss).backward()

    def update(self) -> None:
        """The optimizer's part."""
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def step(self) -> Tensor:
        """One step of training; gives the loss."""
        self.optimizer.zero_grad()
        loss = self.forward()
        self.backward(loss)
        self.update()
        return loss


def task(
    name: str,
    device: str,
    batch: int,
    pixels: int = PIXELS,
    dtype: torch.dtype = torch.float32,
    rate: float = 1e-3,
    half: torch.dtype | None = None,
    dropout: bool = True,
) -> Task:
    """A network with random weights, equal on every device; images of random numbers. With `half` it runs under autocast.
    Without `dropout` no random number is drawn while it trains.

    Raises:
        UserError: no such network, or torchvision is missing.
    """
    torch.manual_seed(0)
    loss: Callable[[Tensor], Tensor]
    inputs: tuple[Tensor, ...]
    if name in ("gpt2", "lstm"):
        model: nn.Module = models.GPT() if name == "gpt2" else models.LSTM()
        tokens = torch.randint(0, 10000, (batch, CONTEXT + 1))
        inputs, target = (tokens[:, :-1].contiguous(),), tokens[:, 1:].flatten()
        loss = _cross_entropy(target.to(device))
    elif name == "dcgan":
        model = models.DCGAN()
        inputs = (torch.rand(batch, 3, 64, 64) * 2 - 1, torch.randn(batch, model.noise, 1, 1))
        truth = torch.cat((torch.ones(batch), torch.zeros(batch))).to(device, dtype)
        loss = lambda logits: F.binary_cross_entropy_with_logits(logits, truth)  # noqa: E731
    else:
        side = 299 if name == "inception_v3" and pixels == PIXELS else pixels
        inputs = (torch.randn(batch, 3, side, side),)
        model = models.UNet() if name == "unet" else _of_torchvision(name, side)
        shape = (batch, side, side) if name == "unet" else (batch,)
        loss = _cross_entropy(torch.randint(0, 21 if name == "unet" else 1000, shape).to(device))
    for module in model.modules():
        if not dropout and (isinstance(module, nn.Dropout) or type(module).__name__ == "StochasticDepth"):
            module.p = 0.0
            module.eval()
    model.to(device=device, dtype=dtype)
    inputs = tuple(x.to(device, dtype if x.is_floating_point() else x.dtype) for x in inputs)
    return Task(model, inputs, loss, torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9), half)


def _cross_entropy(target: Tensor) -> Callable[[Tensor], Tensor]:
    def loss(logits: Tensor) -> Tensor:
        classes_last = logits.dim() == 3
        return F.cross_entropy(logits.flatten(0, 1) if classes_last else logits, target)

    return loss


def _of_torchvision(name: str, side: int) -> nn.Module:
    found = torchvision_models()
    if name not in found.list_models(module=found):
        raise UserError(
            f"no network is called {name!r}", f"there are {', '.join(LIST)}, and what torchvision.models lists"
        )
    options: dict[str, Any] = {}
    if name in ("googlenet", "inception_v3"):
        options = {"aux_logits": False, "init_weights": True}
    elif name.startswith("vit_"):  # which count their patches beforehand
        options = {"image_size": side}
    model: nn.Module = found.get_model(name, weights=None, **options)
    return model


def torchvision_models() -> Any:
    """`torchvision.models`. Where torchvision was built for another torch its C operators are missing, which no network here
    needs: those that it asks for when it is imported are declared, without a body.

    Raises:
        UserError: torchvision is not installed.
    """
    for _ in range(8):
        try:
            from torchvision import models as found
        except ModuleNotFoundError as error:
            raise UserError(
                f"the networks by name are torchvision's: {error}",
                "pip install torchvision, in the version that fits your torch",
            ) from error
        except RuntimeError as error:
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(error))
            if missing is None:
                raise
            library = torch.library.Library("torchvision", "FRAGMENT")
            library.define(f"{missing[1]}(Tensor _) -> Tensor")
            _declared.append(library)
            for module in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
                del sys.modules[module]
        else:
            return found
    raise UserError("torchvision cannot be imported", "install the version that fits your torch")


def of_file(text: str, device: str, batch: int) -> Callable[[], Any]:
    """One iteration of `file.py:function`. The function takes what it names of `device` and `batch`; where it gives a function
    that is the iteration, else a call of it is one. A comprehension gets inputs at random.

    Raises:
        UserError: no such file, or no such function in it, or it ends the process.
    """
    path, _, name = text.rpartition(":")
    if not Path(path).is_file():
        raise UserError(f"there is no file {path!r}", "say file.py:function")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).parent))
    try:
        with mock.patch.object(sys, "argv", [path]):  # what it reads there is not what this process was given
            spec.loader.exec_module(module)
    except SystemExit as end:
        raise UserError(
            f"{path} ends while it is imported (exit code {end.code})",
            "what reads arguments or trains belongs behind `if __name__ == '__main__':`",
        ) from None
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(f"{path} has no function {name!r}", "it is called as function(device=..., batch=...)")
    if inspect.isclass(function):
        raise UserError(
            f"{name} is a class that {Path(path).name} imports or defines, and no function",
            "name a function that takes device and batch, or a comprehension that the file makes",
        )
    room = sys.modules.get("syncscope.kernels.comprehensions")  # there where the file has one
    if room is not None and isinstance(function, room.Comprehension):  # it knows what it takes
        inputs = function.example(device, batch)
        return lambda: function(*inputs)
    known = {"device": device, "batch": batch}
    parameters = inspect.signature(function).parameters
    taken = {k: v for k, v in known.items() if k in parameters}
    needed = [
        p.name for p in parameters.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if unknown := [name for name in needed if name not in known]:
        raise UserError(
            f"{name} needs {', '.join(unknown)}, and is given nothing but device and batch",
            "write a function around it that makes the inputs, and returns the iteration",
        )
    made = function(**taken)
    return made if callable(made) else lambda: function(**taken)
