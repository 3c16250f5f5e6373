"""Networks that torchvision does not have, in their usual sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (inputs, outputs):
        layers += [nn.Conv2d(width, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Segmentation: down four times and up again, with what was seen on the way down (Ronneberger 2015, with batch norm)."""

    def __init__(self, classes: int = 21, width: int = 32) -> None:
        super().__init__()
        widths = [width << k for k in range(5)]
        self.down = nn.ModuleList([_twice(a, b) for a, b in zip([3, *widths[:-1]], widths, strict=True)])
        self.grow = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1])])
        self.up = nn.ModuleList([_twice(2 * w, w) for w in reversed(widths[:-1])])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        seen = []
        for k, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if k else x)
            seen.append(x)
        seen.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat((seen.pop(), grow(x)), 1))
        made: Tensor = self.head(x)
        return made


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(n, length, width))
        made: Tensor = x + self.mlp(self.between(x))
        return made


class GPT(nn.Module):
    """A language model as GPT-2 small: 124 million parameters, the embedding shared with the head."""

    def __init__(
        self, words: int = 50257, width: int = 768, layers: int = 12, heads: int = 12, context: int = 1024
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[_Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.blocks(self.words(tokens) + self.places(places)))
        return F.linear(x, self.words.weight)


class LSTM(nn.Module):
    """A language model of two recurrent layers."""

    def __init__(self, words: int = 10000, width: int = 512) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        made: Tensor = self.head(self.lstm(self.words(tokens))[0])
        return made


class _Reversed(torch.autograd.Function):
    """The identity, whose gradient is negated: what comes before it is trained against what comes after it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return -grad


class DCGAN(nn.Module):
    """Generator against discriminator for images of 64 pixels (Radford 2015), as one: what one lowers the other raises."""

    def __init__(self, noise: int = 100, width: int = 64) -> None:
        super().__init__()
        self.noise = noise
        layers: list[nn.Module] = [nn.ConvTranspose2d(noise, width * 8, 4, bias=False)]
        for w in (8, 4, 2, 1):
            layers += [nn.BatchNorm2d(width * w), nn.ReLU(True)]
            layers.append(nn.ConvTranspose2d(width * w, width * w // 2 if w > 1 else 3, 4, 2, 1, bias=False))
        self.generator = nn.Sequential(*layers, nn.Tanh())
        layers = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for w in (1, 2, 4):
            layers += [
                nn.Conv2d(width * w, width * w * 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width * w * 2),
                nn.LeakyReLU(0.2, True),
            ]
        self.discriminator = nn.Sequential(*layers, nn.Conv2d(width * 8, 1, 4, bias=False))

    def forward(self, images: Tensor, noise: Tensor) -> Tensor:
        made = _Reversed.apply(self.generator(noise))
        return torch.cat((self.discriminator(images).flatten(), self.discriminator(made).flatten()))
