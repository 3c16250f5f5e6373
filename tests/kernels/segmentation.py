"""The segmentation loop's network and its two losses, as people write them: what the device must run without falling back."""

import torch
from torch import nn
from torch.nn import functional as F

CLASSES, IGNORE = 10, -1


def network():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, CLASSES, 3, padding="same")]
    for _ in range(10):
        layers += [nn.Conv2d(CLASSES, CLASSES, 3, padding="same"), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(CLASSES, CLASSES, 3, padding="same"))


def dynamic_loss(logits, target):
    target = target.clone()
    rows = torch.nonzero(target == 9, as_tuple=True)
    target[rows] = IGNORE
    single = torch.unique(target).numel() < 2
    keep = target != IGNORE
    expanded = keep.unsqueeze(-1).expand(*keep.shape, CLASSES)
    kept = logits.permute(0, 2, 3, 1)[expanded].view(-1, CLASSES)
    loss = F.cross_entropy(kept, target[keep])
    return loss * 0 if single else loss


def fixed_loss(logits, target):
    target = torch.where(target == 9, IGNORE, target)
    ordered = target.flatten().sort().values
    distinct = torch.count_nonzero(ordered[1:] - ordered[:-1]) + 1
    loss = F.cross_entropy(logits, target, ignore_index=IGNORE)
    return torch.where(distinct < 2, loss * 0, loss)


def train(device, loss_of, steps=8, size=32, batch=4):
    """Losses, and every parameter's gradient, of each step; the data are the same on every device."""
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    random = torch.Generator().manual_seed(1)
    losses, gradients = [], []
    for _ in range(steps):
        image = torch.rand(batch, 3, size, size, generator=random).to(device)
        target = torch.randint(-1, CLASSES, (batch, size, size), generator=random).to(device)
        optimizer.zero_grad()
        loss = loss_of(model(image), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
        gradients.append([p.grad.cpu() for p in model.parameters()])
    return losses, gradients


def deviation(loss_of, **sizes):
    """Largest difference between device and CPU: of the losses, and of the gradients."""
    (a, ga), (b, gb) = train("cpu", loss_of, **sizes), train("ocl", loss_of, **sizes)
    losses = max(float((x - y).abs()) for x, y in zip(a, b, strict=True))
    pairs = [(x, y) for i, j in zip(ga, gb, strict=True) for x, y in zip(i, j, strict=True)]
    return losses, max(float((x - y).abs().max()) for x, y in pairs)


if __name__ == "__main__":
    import syncscope.kernels  # noqa: F401 - registers the device

    for loss_of in (dynamic_loss, fixed_loss):
        losses, gradients = deviation(loss_of, size=64, batch=8)
        print(
            f"{loss_of.__name__}: over 8 steps losses differ from the CPU's by at most {losses:.1e}, gradients {gradients:.1e}"
        )
