"""Does every wait of a real training step have its line? Recorded on a GPU, beside what torch itself warns of.

    python benchmarks/cuda_lines.py                  all programs whose libraries are installed
    python benchmarks/cuda_lines.py detection moe    some of them

torch's sync debug mode warns of every operation that makes the host wait. For one step of each program the table compares the
lines of those warnings with the lines of a recording: `warned` counts waits by torch, `reads` by the recording (the several
waits of one expression are one read; waits that torch does not warn of are counted too), `missed` the warned lines that the
recording does not name, and `no line` the reads without one.
"""

from __future__ import annotations

import argparse
import json
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import syncscope
from syncscope.analysis.reads import reads
from syncscope.analysis.waits import launches, waits
from syncscope.model.trace import Kind

Step = Callable[[], Any]
STEPS = 3  # recorded; the second is counted


def policy(device: torch.device) -> Step:
    """Reinforcement learning: distributions, a choice by a mask, actions for the environment."""
    net = torch.nn.Linear(8, 4).to(device)
    optimizer = torch.optim.Adam(net.parameters())

    def step() -> Any:
        states, advantages = torch.randn(32, 8, device=device), torch.randn(32, device=device)
        chosen = torch.distributions.Categorical(logits=net(states))
        actions = chosen.sample()
        spread = torch.distributions.Normal(net(states).mean(1), 1.0).log_prob(advantages)
        loss = -(chosen.log_prob(actions) * advantages).mean() + spread.mean() + advantages[advantages > 0].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return actions.cpu().numpy()

    return step


def mixed_precision(device: torch.device) -> Step:
    """Classification with a loss scale, a clipped gradient and a log line."""
    import timm

    net = timm.create_model("resnet50").to(device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    scaler = torch.amp.GradScaler(device.type)
    images, labels = torch.rand(16, 3, 224, 224), torch.randint(0, 1000, (16,))

    def step() -> Any:
        x, y = images.to(device), labels.to(device)
        with torch.autocast(device.type, dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if torch.isnan(loss):
            raise SystemExit("diverged")
        return f"{norm:.3f} {loss:.3f}"

    return step


def boxes(device: torch.device) -> list[dict[str, torch.Tensor]]:
    corners = torch.tensor([[10.0, 10, 100, 120], [50, 60, 200, 220]], device=device)
    return [{"boxes": corners, "labels": torch.tensor([1, 2], device=device)} for _ in range(2)]


def detection(device: torch.device, name: str = "fasterrcnn_resnet50_fpn") -> Step:
    """Two stages: anchors, matching, sampling, suppression of overlaps."""
    from torchvision.models import detection as models

    net = getattr(models, name)(weights=None, weights_backbone=None, num_classes=5, min_size=320).to(device).train()
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    images, targets = [torch.rand(3, 320, 320, device=device) for _ in range(2)], boxes(device)

    def step() -> Any:
        loss = sum(net(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
        return loss.item()

    return step


def one_stage_detection(device: torch.device) -> Step:
    """The same without the second stage."""
    return detection(device, "retinanet_resnet50_fpn")


def experts(device: torch.device) -> Step:
    """A language model whose tokens are sorted by expert."""
    from transformers import MixtralConfig, MixtralForCausalLM

    sizes = {"vocab_size": 1000, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "output_router_logits": True}
    net = MixtralForCausalLM(MixtralConfig(**sizes, **heads)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
    tokens = torch.randint(0, 1000, (2, 64), device=device)

    def step() -> Any:
        loss = net(input_ids=tokens, labels=tokens, attention_mask=torch.ones_like(tokens)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def matching(device: torch.device) -> Step:
    """A detector whose predictions are matched with the labels on the host."""
    from transformers import RTDetrConfig, RTDetrForObjectDetection

    net = RTDetrForObjectDetection(RTDetrConfig(num_labels=4)).to(device).train()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
    images = torch.rand(2, 3, 320, 320, device=device)
    labels = [
        {"class_labels": torch.tensor([0, 1], device=device), "boxes": torch.rand(2, 4, device=device) * 0.4 + 0.1}
        for _ in range(2)
    ]

    def step() -> Any:
        loss = net(pixel_values=images, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def generation(device: torch.device) -> Step:
    """Speech to text, token by token."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = WhisperConfig(d_model=128, encoder_ffn_dim=256, decoder_ffn_dim=256, **layers)
    net = WhisperForConditionalGeneration(config).to(device).eval()
    features = torch.randn(1, 80, 3000, device=device)

    def step() -> Any:
        with torch.no_grad():
            return net.generate(features, max_new_tokens=8)

    return step


def graphs(device: torch.device) -> Step:
    """A graph network with pooling and a batch of graphs made dense."""
    from torch_geometric.nn import GAT, TopKPooling
    from torch_geometric.utils import remove_self_loops, to_dense_batch

    net, pool = GAT(16, 32, 2, 4).to(device), TopKPooling(4).to(device)
    optimizer = torch.optim.Adam([*net.parameters(), *pool.parameters()])
    x, edges = torch.randn(200, 16, device=device), torch.randint(0, 200, (2, 900), device=device)
    batch = torch.arange(200, device=device) // 50

    def step() -> Any:
        h, kept, _, of, *_ = pool(net(x, edges), edges, batch=batch)
        dense, _ = to_dense_batch(h, of)
        loss = dense.sum() + remove_self_loops(kept)[0].float().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


PROGRAMS: tuple[Callable[[torch.device], Step], ...] = (
    policy,
    mixed_precision,
    detection,
    one_stage_detection,
    experts,
    matching,
    generation,
    graphs,
)


def warned(step: Step) -> Counter[str]:
    """The lines, of any file, that torch warns of in one step."""
    lines: Counter[str] = Counter()

    def show(message: object, *_: object, **__: object) -> None:
        if "called a synchronizing" in str(message):
            frames = [f for f in traceback.extract_stack()[:-1] if not f.filename.endswith("warnings.py")]
            lines[f"{short(frames[-1].filename)}:{frames[-1].lineno}"] += 1

    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        torch.cuda.set_sync_debug_mode("warn")
        step()
        torch.cuda.set_sync_debug_mode(0)
    warnings.showwarning = shown
    return lines


def recorded(step: Step) -> tuple[Counter[str], int, int]:
    """Of one step in a recording: lines of readers, the library's where a library reads; reads; reads without a line."""
    with syncscope.trace() as recording:
        for _ in range(STEPS):
            step()
            recording.step()
    trace = recording.trace
    middle = [e for e in trace if e.kind == Kind.STEP][1]
    lines: Counter[str] = Counter()
    for event in trace:
        if event.kind == Kind.READ and middle.start <= event.start < middle.end and event.place is not None:
            inner = json.loads(event.detail).get("library") if event.detail.startswith("{") else None
            lines[inner or f"{short(event.place.path)}:{event.place.line}"] += 1
    launched = launches(trace)
    found = [r for r in reads(trace, waits(trace, launched), launched) if middle.start <= r.start < middle.end]
    return lines, len(found), sum(read.place is None for read in found)


def short(path: str) -> str:
    """A file without the folder it is installed in, as the recorder names it."""
    return path.rpartition("site-packages/")[2]


def main() -> None:
    names = {program.__name__: program for program in PROGRAMS}
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("programs", nargs="*", choices=[*names, []], default=[], metavar="PROGRAM")
    given = options.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here")
    device = torch.device("cuda")
    table = Table("program", "warned", "on lines", "missed", "reads", "no line", title=torch.cuda.get_device_name())
    for name in given.programs or names:
        torch.manual_seed(0)
        try:
            step = names[name](device)
        except ImportError as missing:
            table.add_row(name, f"not run: {missing}")
            continue
        for _ in range(3):
            step()
        told = warned(step)
        lines, count, lost = recorded(step)
        # `print(tensor)` and `f"{tensor}"` are reads of the line that says so; torch's warning comes from inside of them
        missed = [line for line in told if line not in lines and not line.startswith("torch/_tensor")]
        table.add_row(name, *map(str, (sum(told.values()), len(told), len(missed), count, lost)))
        for line in missed:
            print(f"{name}: no read at {line}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
