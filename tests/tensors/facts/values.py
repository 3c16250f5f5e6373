# ruff: noqa: F821, RUF015, B007  # `reveal` is read, not run
from dataclasses import dataclass

import einops
import numpy as np
import torch
from torch import Tensor
from torch.distributions import Normal
from torch.utils.data import DataLoader


@dataclass
class Batch:
    image: Tensor
    label: torch.LongTensor
    name: str


def annotated(x: Tensor, mask: torch.BoolTensor | None, count: int, batch: Batch, images: list[Tensor]):
    reveal(x)  # tensor 3
    reveal(mask)  # tensor bool 3
    reveal(count)  # scalar int host 3
    reveal(batch.image)  # tensor 3
    reveal(batch.label)  # tensor int 3
    reveal(batch.name)  # other 3
    for image in images:
        reveal(image)  # tensor 3
    reveal([each * 2 for each in images][0])  # tensor 3


def made(device, x: Tensor):
    reveal(torch.zeros(3, 4))  # tensor float host 2-d 3
    reveal(torch.zeros(3, device=device))  # tensor float 1-d 3
    reveal(torch.zeros(3, device="cuda"))  # tensor float device 1-d 3
    reveal(torch.zeros_like(x))  # tensor 3
    reveal(torch.arange(3) + 1.5)  # tensor float host 1-d 3
    reveal(torch.arange(3, device=x.device) % 2 == 0)  # tensor bool 1-d 3
    reveal(torch.from_numpy(np.ones(3)).bool())  # tensor bool host 3
    reveal(torch.div(7, 2, rounding_mode="floor"))  # tensor float host 3
    reveal(torch.tensor([1, 2, 3]))  # tensor int host fixed 1-d 3
    reveal(torch.tensor(1.0).cuda())  # tensor float device fixed 0-d 3


def crossed(x: Tensor):
    reveal(x.cpu())  # tensor host 3
    reveal(x.detach().cpu().numpy())  # array host 3
    reveal(np.asarray(x))  # array host 3
    reveal(x.shape)  # sequence int host 3
    reveal(x.shape[0])  # scalar int host 3
    reveal(x.size(0))  # scalar int host 3
    reveal(x.item())  # scalar host 3
    reveal(float(x))  # scalar float host 3
    reveal(x.tolist())  # sequence host 3


def shaped(x: Tensor, y: Tensor):
    flat = x.view(-1)
    reveal(flat)  # tensor 1-d 3
    reveal(flat[0])  # tensor 0-d 3
    reveal(flat[flat > 0])  # tensor dynamic 1-d 3
    reveal(flat[:5])  # tensor 1-d 3
    reveal(flat[None])  # tensor 2-d 3
    reveal(einops.rearrange(x, "b c h w -> b (h w) c"))  # tensor 3-d 3
    reveal(torch.where(x > 0, x, y))  # tensor 3
    reveal(torch.unique(x))  # tensor dynamic 1-d 3
    reveal(torch.stack([flat, flat]))  # tensor 2-d 3
    reveal(x & y.bool())  # tensor bool 3
    reveal((x > 0).sum())  # tensor int 0-d 3
    reveal((x > 0).float().mean(dim=0))  # tensor float 3
    reveal(-x if x is not None else y)  # tensor 3
    reveal({"a": x, "b": 1}["a"])  # tensor 3


PLAIN = (int, float, str)


def plain(value):
    if isinstance(value, PLAIN):
        reveal(value)  # other 3
    elif value.nelement() > 1 and value.element_size() == 2:
        reveal(value)  # tensor 2


def narrowed(value, number):
    if isinstance(value, torch.Tensor):
        reveal(value)  # tensor 3
    else:
        reveal(value)  # unknown
    if not torch.is_tensor(number):
        number = torch.tensor(number, device="cuda")
    reveal(number)  # tensor device 3


def looped(loader: DataLoader, model: torch.nn.Module):
    for step, (x, y) in enumerate(loader):
        reveal(step)  # scalar int host 3
        reveal(x)  # tensor host 2
        x = x.to("cuda")
        reveal(x)  # tensor device 2
        reveal(model(x))  # tensor 2


def drawn(mean: Tensor):
    reveal(Normal(mean, 1.0).sample())  # tensor float 3
    reveal(Normal(mean, 1.0).log_prob(mean))  # tensor float 3


def helper(x):
    return x.float() * 2


def doubled(x, how="fast"):
    return (helper(x), len(how))


def called(scores: Tensor, mask: Tensor):
    def inner():
        return scores[mask > 0]

    reveal(helper(scores))  # tensor float 3
    pair, length = doubled(scores)
    reveal(pair)  # tensor float 3
    reveal(length)  # scalar int host 3
    reveal(inner())  # tensor dynamic 3
    reveal(unknown(scores))  # unknown


def unknown_values(config, path, items):
    reveal(config.value)  # unknown
    reveal(path)  # unknown
    reveal(items[0])  # unknown
    reveal(config.size > 3)  # unknown bool


def filled(kept: dict[str, Anything], keys):
    mine = {}
    for key in keys:
        if key not in kept:
            kept[key] = torch.empty(0)
        reveal(kept[key])  # unknown
        mine[key] = torch.empty(0)
        reveal(mine[key])  # tensor float host 1-d 3
