import json
import math
import os
import time
from dataclasses import asdict

import torch
from config import TrainConfig
from data import PackedDocuments
from model import MoETransformer


def lr_at(step, cfg):
    warmup = 5
    if step < warmup:
        return cfg.lr * (step + 1) / warmup
    return cfg.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, cfg.max_steps - warmup))))


class Logger:
    def __init__(self, path):
        self.file = open(path, "w")
        self.window = []

    def add(self, **values):
        self.window.append(values)

    def flush(self, step):
        mean = {k: sum(float(w[k]) for w in self.window) / len(self.window) for k in self.window[0]}
        self.file.write(json.dumps({"step": step, **mean}) + "\n")
        print(f"step {step} " + " ".join(f"{k} {v:.4f}" for k, v in mean.items()))
        self.window = []


def to_device(batch, device):
    return [x.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else x.to(device) for x in batch]


@torch.no_grad()
def evaluate(model, loader, device, n=2):
    model.eval()
    losses = []
    for i, batch in enumerate(loader):
        if i >= n:
            break
        tokens, docs = to_device(batch, device)
        _, loss = model(tokens[:, :-1], tokens[:, 1:], docs)
        losses.append(loss)
    model.train()
    loss = torch.stack(losses).mean().item()
    return loss, math.exp(loss)


def expert_load(model, tokens):
    """How many tokens each expert gets: a diagnosis that nobody calls in training."""
    counts = []
    h = model.tok(tokens)
    for block in model.blocks:
        selected = block.moe.gate(h).topk(block.moe.top_k, -1)[1]
        counts.append(torch.bincount(selected.flatten(), minlength=block.moe.n_experts).tolist())
    return counts


def train(cfg: TrainConfig):
    os.makedirs(cfg.out_dir, exist_ok=True)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = MoETransformer(cfg.model).to(device)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": no_decay, "weight_decay": 0.0}],
        lr=cfg.lr,
        betas=(0.9, 0.95),
    )
    loader = iter(
        torch.utils.data.DataLoader(PackedDocuments(cfg.model.vocab_size, cfg.model.max_seq_len, 0), cfg.batch_size)
    )
    val_loader = torch.utils.data.DataLoader(
        PackedDocuments(cfg.model.vocab_size, cfg.model.max_seq_len, 1), cfg.batch_size
    )
    logger = Logger(os.path.join(cfg.out_dir, "log.jsonl"))
    autocast = torch.autocast(device.type, dtype=getattr(torch, cfg.dtype))
    best, skipped, tokens_seen, t0 = float("inf"), 0, 0, time.perf_counter()

    for step in range(cfg.max_steps):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step, cfg)

        loss_accum = torch.zeros((), device=device)
        for _ in range(cfg.grad_accum):
            tokens, docs = to_device(next(loader), device)
            with autocast:
                _, ce = model(tokens[:, :-1], tokens[:, 1:], docs)
                loss = (ce + cfg.aux_weight * model.aux_loss()) / cfg.grad_accum
            loss_accum += loss.detach()
            loss.backward()
            tokens_seen += tokens.numel()

        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.max_norm)
        if not torch.isfinite(norm) or norm > cfg.skip_norm:
            skipped += 1
            print(f"step {step}: gradient norm {norm.item():.2f}, skipped")
        else:
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        logger.add(loss=loss_accum, norm=norm)

        if (step + 1) % cfg.log_every == 0:
            if device.type == "cuda":
                torch.cuda.synchronize()
            dt = time.perf_counter() - t0
            logger.flush(step + 1)
            print(f"{tokens_seen / dt:.0f} tok/s")
        if (step + 1) % cfg.eval_every == 0:
            val_loss, ppl = evaluate(model, val_loader, device)
            print(f"step {step + 1}: val {val_loss:.4f} ppl {ppl:.2f}")
            if val_loss < best:
                best = val_loss
                torch.save(
                    {"model": model.state_dict(), "config": asdict(cfg), "step": step},
                    os.path.join(cfg.out_dir, "best.pt"),
                )
    out = model.generate(torch.ones(1, 1, dtype=torch.long, device=device), 10)
    print(out[0].tolist(), "skipped", skipped)


if __name__ == "__main__":
    train(TrainConfig())
