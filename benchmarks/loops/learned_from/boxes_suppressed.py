"""Detections are thinned out by the host: the best by score are cut at a threshold, and their overlaps come down."""

from __future__ import annotations

from typing import Any

from loops import Step


def kept(overlaps: Any) -> list[int]:
    """What remains when each box leaves out those that it overlaps; overlaps: (n, n) of bool, best first."""
    left, found = list(range(len(overlaps))), []
    while left:
        best = left.pop(0)
        found.append(best)
        left = [one for one in left if not overlaps[best, one]]
    return found


def loop(torch: Any, device: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    large = device.type == "cuda"
    images, anchors, width, inner, best = (4, 6000, 256, 512, 100) if large else (2, 400, 64, 96, 24)
    trunk = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, inner), nn.ReLU()).to(device)
    score, shape = nn.Linear(inner, 1).to(device), nn.Linear(inner, 4).to(device)
    features = torch.randn(images, anchors, width).to(device)
    corners = torch.rand(images, anchors, 2).to(device)
    earlier: dict[int, Any] = {}  # the overlaps of each image, which every step finds again: the host has as much to do

    def run(reads: bool) -> None:
        results: list[Any] = []
        with torch.no_grad():
            for number in range(images):
                hidden = trunk(features[number])
                scores = score(hidden)[:, 0].sigmoid()
                sizes = shape(hidden)[:, 2:].sigmoid() * 0.3
                boxes = torch.cat([corners[number], corners[number] + sizes], 1)
                if reads:
                    sure = scores > 0.02
                    scores, boxes = scores[sure], boxes[sure]
                else:
                    scores = torch.where(scores > 0.02, scores, -1.0)
                scores, order = scores.topk(best)
                boxes = boxes[order]
                low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
                high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
                shared = (high - low).clamp(min=0).prod(-1)
                areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
                overlaps = shared / (areas[:, None] + areas - shared) > 0.5
                if reads or number not in earlier:
                    earlier[number] = overlaps.cpu().numpy()
                keep = kept(earlier[number])
                if reads:
                    chosen = boxes[keep].tolist(), scores[keep].tolist()
                    results.append([{"box": b, "score": s} for b, s in zip(*chosen, strict=True)])
                else:
                    results.append((boxes, scores, keep))

    return run
