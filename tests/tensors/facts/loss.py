# ruff: noqa: F821, RUF059  # `reveal` is read, not run
import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedLoss(nn.Module):
    def __init__(self, classes: int, weight=None):
        super().__init__()
        self.classes = classes
        self.criterion = nn.CrossEntropyLoss()
        self.register_buffer("weight", torch.ones(classes))
        self.scale = nn.Parameter(torch.zeros(1))
        reveal(weight)  # unknown

    def forward(self, logits, target):
        reveal(self.classes)  # scalar int host 3
        reveal(self.weight)  # tensor float fixed 1-d 3
        reveal(self.scale)  # tensor float fixed 1-d 3
        reveal(target.unsqueeze(0))  # tensor 2
        keep = target != -1
        reveal(keep)  # tensor bool 2
        kept = logits[keep]
        reveal(kept)  # tensor dynamic 2
        loss = self.criterion(kept, target[keep])
        reveal(loss)  # tensor 0-d 3
        per_pixel = F.cross_entropy(logits, target, reduction="none")
        reveal(per_pixel)  # tensor float 3
        reveal(per_pixel.mean())  # tensor float 0-d 3
        background = torch.nonzero(target == 9, as_tuple=True)
        reveal(background[0])  # tensor int dynamic 1-d 3
        reveal(logits.softmax(dim=1).argmax(dim=1))  # tensor int 2
        values, places = logits.max(dim=1)
        reveal(places)  # tensor int 2
        total = 0.0
        for each in per_pixel:
            total += each
        reveal(total)  # tensor float 2
        return loss.item()
