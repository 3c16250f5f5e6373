"""Train a small network to label every pixel of a photograph, with a loss as people write it.

Three lines of that loss look innocent and make the host wait for the device on every step; `--fixed` has the same loss in
fixed shapes. Both give the same values.

    python samples/segmentation.py                          the loss as written, on the best device there is
    python samples/segmentation.py --fixed                  the loss in fixed shapes
    python samples/segmentation.py --trace runs/written     the same, recorded: `syncscope report` reads it
"""

from __future__ import annotations

import argparse
import contextlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_images
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

CLASSES = 10
BACKGROUND = 9  # the brightest colour: sky and glare
IGNORE = -1


def network() -> nn.Sequential:
    """Twelve 3 x 3 convolutions from colours to a score for each class."""
    layers: list[nn.Module] = [nn.Conv2d(3, 10, 3, padding="same")]
    for _ in range(10):
        layers += [nn.Conv2d(10, 10, 3, padding="same"), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(10, CLASSES, 3, padding="same"))


def loss_as_written(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over the labelled foreground, as it is often written. Zero where a batch has one label only."""
    target = target.clone()
    background = torch.nonzero(target == BACKGROUND, as_tuple=True)
    target[background] = IGNORE
    if torch.unique(target).numel() < 2:
        return logits.sum() * 0.0
    keep = target != IGNORE
    scores = logits.permute(0, 2, 3, 1)
    chosen = keep.unsqueeze(-1).expand_as(scores)
    return nn.CrossEntropyLoss()(scores[chosen].view(-1, CLASSES), target[keep])


def loss_in_fixed_shapes(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The same values with no shape that depends on data, so that the host never has to ask."""
    target = torch.where(target == BACKGROUND, IGNORE, target)
    labels = torch.count_nonzero(target.flatten().sort().values.diff()) + 1
    loss = F.cross_entropy(logits, target, ignore_index=IGNORE)
    return torch.where(labels < 2, 0.0, loss)


def crops(count: int, size: int, seed: int = 0) -> TensorDataset:
    """Random square crops of two photographs; the label of a pixel is its nearest of ten colours, -1 where none is near."""
    rng = np.random.default_rng(seed)
    photographs = [photo.astype(np.float32) / 255 for photo in load_sample_images().images]
    pixels = np.concatenate([photo.reshape(-1, 3) for photo in photographs])
    colours = KMeans(CLASSES, n_init=1, random_state=seed).fit(rng.choice(pixels, 4000)).cluster_centers_
    colours = colours[np.argsort(colours.sum(axis=1))]  # dark to bright: the last is the background
    images, labels = [], []
    for _ in range(count):
        photo = photographs[rng.integers(len(photographs))]
        top, left = (rng.integers(side - size + 1) for side in photo.shape[:2])
        crop = photo[top : top + size, left : left + size]
        distance = np.linalg.norm(crop[:, :, None] - colours, axis=-1)
        label = distance.argmin(axis=-1)
        label[distance.min(axis=-1) > 0.2] = IGNORE
        images.append(torch.from_numpy(crop.transpose(2, 0, 1).copy()))
        labels.append(torch.from_numpy(label))
    return TensorDataset(torch.stack(images), torch.stack(labels))


def find_device(name: str) -> torch.device:
    """The device of that name; "auto" is the first that is there of cuda, xpu, ocl and cpu."""
    if name == "auto":
        name = next((kind for kind in ("cuda", "xpu") if getattr(torch, kind).is_available()), "ocl")
    if name == "ocl":
        import syncscope.kernels  # noqa: F401  (registers the device)
    return torch.device(name)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was asked to: a clock read before that times the queueing, not the work."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()


def train(args: argparse.Namespace) -> list[float]:
    """Train, print the time of a step, and return the loss of each step."""
    torch.manual_seed(args.seed)
    device = find_device(args.device)
    data = crops(CROPS, args.size, args.seed)
    order = RandomSampler(data, num_samples=args.batch * args.steps)
    loader = DataLoader(data, args.batch, sampler=order, pin_memory=device.type == "cuda")
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    criterion = loss_in_fixed_shapes if args.fixed else loss_as_written
    losses = []

    recording = contextlib.nullcontext()
    if args.trace:
        import syncscope

        recording = syncscope.trace(args.trace, record_shapes=args.shapes)
    with recording as trace:
        start = None
        for step, (images, labels) in enumerate(loader):
            if step == args.warmup:
                synchronize(device)
                start = time.perf_counter()
            with record_function("upload"):
                images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            with record_function("forward"):
                logits = model(images)
            with record_function("loss"):
                loss = criterion(logits, labels)
            with record_function("backward"):
                optimizer.zero_grad()
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
            losses.append(loss.detach())
            if trace is not None:
                trace.step()
        synchronize(device)
    if start is not None:
        seconds = (time.perf_counter() - start) / (args.steps - args.warmup)
        kind = "in fixed shapes" if args.fixed else "as written"
        print(
            f"{device}: {1000 * seconds:.1f} ms a step with the loss {kind} (mean of {args.steps - args.warmup} steps)"
        )
    history = torch.stack(losses).tolist()
    print("loss", *(f"{value:.4f}" for value in history))
    return history


LARGEST = 427  # pixels: the height of the photographs
CROPS = 96  # to draw from


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=["auto", "ocl", "cuda", "xpu", "cpu"])
    parser.add_argument(
        "--size", type=int, default=64, help=f"height and width of a crop, up to {LARGEST} (default: 64)"
    )
    parser.add_argument("--batch", type=int, default=8, help="crops in a batch (default: 8)")
    parser.add_argument("--steps", type=int, default=12, help="steps to train (default: 12)")
    parser.add_argument(
        "--warmup", type=int, default=3, help="first steps that are not timed: kernels compile (default: 3)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fixed", action="store_true", help="the loss in fixed shapes")
    parser.add_argument("--trace", metavar="LOGDIR", help="record the run into this folder")
    parser.add_argument("--shapes", action="store_true", help="with --trace: shapes too, for `syncscope roofline`")
    args = parser.parse_args(argv)
    if not 1 <= args.size <= LARGEST:
        parser.error(f"--size {args.size}: the photographs are {LARGEST} pixels high")
    return args


if __name__ == "__main__":
    train(arguments())
