"""A recommender is evaluated: users go up, what they know is left out, the best twenty items come down and are judged."""

from __future__ import annotations

import math
from typing import Any

from loops import Step


def loop(torch: Any, device: Any) -> Step:
    torch.manual_seed(0)
    large = device.type == "cuda"
    batch, items, width, users, best = (256, 16384, 128, 8192, 20) if large else (24, 1024, 48, 512, 20)
    tastes, goods = torch.randn(users, width).to(device), torch.randn(items, width).to(device)
    batches = []
    for _ in range(4):
        who = torch.randint(0, users, (batch,))
        rows = torch.arange(batch).repeat_interleave(16)
        known = torch.randint(0, items, (batch * 16,))
        wanted = [set(torch.randint(0, items, (12,)).tolist()) for _ in range(batch)]
        pinned = [part.pin_memory() if large else part for part in (who, rows, known)]
        batches.append(((who, rows, known), pinned, wanted))
    earlier = torch.randint(0, items, (batch, best)).tolist()
    gains = [1 / math.log2(rank + 2) for rank in range(best)]

    def run(reads: bool) -> None:
        recall = gain = 0.0
        kept = []
        with torch.no_grad():
            for pageable, pinned, wanted in batches:
                if reads:
                    who, rows, known = (part.to(device) for part in pageable)
                else:
                    who, rows, known = (part.to(device, non_blocking=True) for part in pinned)
                scores = tastes[who] @ goods.T
                scores[rows, known] = -math.inf
                ranked = scores.topk(best).indices
                kept.append(ranked)
                for found, wishes in zip(ranked.cpu().tolist() if reads else earlier, wanted, strict=True):
                    hits = [item in wishes for item in found]
                    recall += sum(hits) / len(wishes)
                    gain += sum(worth for worth, hit in zip(gains, hits, strict=True) if hit)

    return run
