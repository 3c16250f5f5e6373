"""Thirty wrong and thirty right rewrites of small programs, and what `syncscope verify` says of each: refused, or not.

    python benchmarks/planted_rewrites.py [--only PART] [--seed N] [--in-one] [--varying unless-asked|always]

Programs lie in `planted/`; a rewrite is text for text. Each is compared as `syncscope verify before.py after.py` does it, where
last bits may differ; nothing is timed. With `--in-one`, values are compared in one process first, from one snapshot.
With `--varying`, layers give other last bits each time, as on CUDA: unless torch's deterministic algorithms are asked for,
or even then.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from syncscope.verify.compared import Compared
from syncscope.verify.processes import Processes, RunFailedError
from syncscope.verify.request import Program
from syncscope.verify.results import CHANGED, EQUAL, Verification
from syncscope.verify.runs import Runs, Settings
from syncscope.verify.two import OTHER
from syncscope.verify.values import values_of

FOLDER = Path(__file__).parent / "planted"
RIGHT, WRONG = True, False
VARYING = "unless-asked", "always"


@dataclass(frozen=True)
class Rewrite:
    """Of one program, each text of `edits` for the other."""

    program: str
    is_right: bool
    says: str
    edits: tuple[tuple[str, str], ...]

    def made(self) -> str:
        """The rewritten program.

        Raises:
            ValueError: a text is not there, or several times.
        """
        text = (FOLDER / f"{self.program}.py").read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.says}: {old!r} is there {text.count(old)} times")
            text = text.replace(old, new)
        return text


def _of(program: str, is_right: bool, says: str, *edits: tuple[str, str]) -> Rewrite:
    return Rewrite(program, is_right, says, edits)


SUM = "    total += loss.item()\n"
CORRECT = "    correct += (logits.argmax(1) == y).sum().item()\n"
SEEN = "    seen += mask.sum().item()\n"
BEST = "    if loss.item() < best:\n        best = loss.item()\n"
LOSS = "    loss = nn.functional.cross_entropy(logits[mask], y[mask])\n"
HISTORY = "    history.append(norm.item())\n"
AT_END = "    if step % EACH == EACH - 1:\n"
CLIPPED = "    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
UPLOAD = "    x = torch.randn(24, 6).to(device)\n"
STEPPED = "    optimizer.step()\n    scheduler.step()\n"
SUM_LATER = ((SUM, "    total += loss.detach()\n"), (AT_END, AT_END + "        total = float(total)\n"))
REAL = "    d_x = score.mean().item()\n"
GUESSED = "    d_g = score.mean().item()\n"
PRINTED = '    print(f"{step} {of_real.item() + of_fake.item():.4f} {of_making.item():.4f} {d_x:.4f} {d_g:.4f}")\n'
LARGEST = "    largest = max(largest, max(p.grad.abs().max().item() for p in policy.parameters()))\n"
ADVANTAGE = "    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)\n"
AVERAGED = "            q.mul_(0.95).add_(p, alpha=0.05)\n"
ALL_AT_ONCE = """\
    a, b, c = torch.stack([loss.detach(), (logits.argmax(1) == y).sum(), mask.sum()]).tolist()
    total, correct, seen = total + a, correct + int(b), seen + int(c)
"""
PRINTED_AT_ONCE = """\
    read = torch.stack([d_x, d_g, of_real.detach(), of_fake.detach(), of_making.detach()])
    d_x, d_g, a, b, c = read.tolist()
    print(f"{step} {a + b:.4f} {c:.4f} {d_x:.4f} {d_g:.4f}")
"""
NAN = '    if torch.isnan(loss):\n        raise SystemExit("NaN")\n'
METERS = "    of_loss.update(loss.item(), 32)\n    of_entropy.update(entropy.item())\n"

WRONG_ONES = (
    ("classes", "the sum is lost: the last loss stands for it", (SUM, "    total = loss.item()\n")),
    (
        "classes",
        "the sum is lost on the device",
        (SUM, "    total = loss.detach()\n"),
        (AT_END, AT_END + "        total = float(total)\n"),
    ),
    ("classes", "a read that is gone: nothing is counted", (SEEN, "    seen += 1\n")),
    ("classes", "a read that is gone: the history stays empty", (HISTORY, "")),
    ("classes", "a mean where a sum was", (LOSS, LOSS.replace("y[mask])", 'y[mask], reduction="sum") / 24'))),
    ("classes", "the mask is inverted", ("    mask = y >= 0\n", "    mask = y < 0\n"), ("y[mask])", "y[mask] % 3)")),
    ("classes", "all count as seen, also those that are left out", (SEEN, "    seen += len(y)\n")),
    ("classes", "off by one: an epoch more", ("STEPS, EACH = 16, 4", "STEPS, EACH = 16, 5")),
    ("classes", "off by one: labels are shifted", ("    mask = y >= 0\n", "    y = y.roll(1)\n    mask = y >= 0\n")),
    (
        "classes",
        "order: gradients are cleared behind the backward pass",
        ("    optimizer.zero_grad()\n", ""),
        ("    loss.backward()\n", "    loss.backward()\n    optimizer.zero_grad(set_to_none=False)\n"),
    ),
    ("classes", "order: the rate falls before the step", (STEPPED, "    scheduler.step()\n    optimizer.step()\n")),
    (
        "classes",
        "clipped behind the step",
        (CLIPPED, ""),
        (STEPPED, STEPPED.replace("    scheduler", CLIPPED + "    scheduler")),
    ),
    ("classes", "the best of all is the largest", (BEST, BEST.replace("<", ">"))),
    (
        "classes",
        "a stale value: the loss of the step before",
        (SUM, "    total += last if step else 0.0\n    last = loss.item()\n"),
    ),
    (
        "classes",
        "random numbers are drawn on another way",
        (UPLOAD, "    x = torch.rand(24, 6).mul(2).sub(1).to(device)\n"),
    ),
    ("classes", "random numbers are drawn twice", (UPLOAD, UPLOAD + "    torch.randn(24)\n")),
    ("classes", "accuracy of whole numbers", ("accuracy = correct / seen", "accuracy = correct // seen")),
    (
        "classes",
        "right answers are counted of the masked only, in another place",
        (CORRECT, "    correct += (logits.argmax(1)[mask] == 0).sum().item()\n"),
    ),
    ("classes", "the loss in half precision", (LOSS, LOSS.replace("logits[mask]", "logits[mask].bfloat16()"))),
    (
        "classes",
        "parameters in double precision",
        (").to(device)\noptimizer", ").to(device).double()\noptimizer"),
        (UPLOAD, UPLOAD.replace("to(device)", "to(device).double()")),
    ),
    (
        "adversaries",
        "a detach is dropped",
        ("critic(fake.detach())", "critic(fake)"),
        ("of_fake.backward()", "of_fake.backward(retain_graph=True)"),
    ),
    ("adversaries", "a detach too many", ("    score = critic(fake)\n", "    score = critic(fake.detach())\n")),
    (
        "adversaries",
        "a backward pass more",
        ("    of_making.backward()\n", "    of_making.backward(retain_graph=True)\n    (of_making * 0).backward()\n"),
    ),
    (
        "adversaries",
        "two backward passes as one",
        ("    of_real.backward()\n", ""),
        ("    of_fake.backward()\n", "    (of_real + of_fake).backward()\n"),
    ),
    ("adversaries", "one read stands for two", (GUESSED, "    d_g = d_x\n")),
    (
        "adversaries",
        "a buffer that both share is changed in place",
        ("    score = critic(fake.detach())\n", "    noise.data.mul_(0.5)\n    score = critic(fake.detach())\n"),
    ),
    (
        "policy",
        "the mean is taken off in place, and a thousandth more",
        ("    state = state - mean\n", "    state.sub_(mean).mul_(1.001)\n"),
    ),
    ("policy", "keepdim is lost: every row times every other", ("state.sum(1, keepdim=True)", "state.sum(1)")),
    (
        "policy",
        "a mean over another count",
        (ADVANTAGE, ADVANTAGE.replace("advantage.std()", "advantage.std(correction=0)")),
    ),
    ("policy", "the average is the model itself", ("average = copy.deepcopy(policy)", "average = copy.copy(policy)")),
    ("policy", "the meter counts batches in place of rows", (METERS, METERS.replace(", 32", ""))),
    ("policy", "the largest of the last step only", (LARGEST, LARGEST.replace("max(largest, max(", "max(0.0, max("))),
    (
        "policy",
        "numbers of another kind are counted",
        ("    kept = int((action == 0).sum())\n", "    kept = int((action != 0).sum())\n"),
    ),
)
RIGHT_ONES = (
    ("classes", "added up on the device, read at the end", *SUM_LATER),
    (
        "classes",
        "right answers are added up on the device",
        (CORRECT, CORRECT.replace(".item()", "")),
        (AT_END, AT_END + "        correct = int(correct)\n"),
    ),
    (
        "classes",
        "what was seen is added up on the device",
        (SEEN, SEEN.replace(".item()", "")),
        (AT_END, AT_END + "        seen = int(seen)\n"),
    ),
    ("classes", "all three are read at once", (SUM + CORRECT + SEEN, ALL_AT_ONCE)),
    (
        "classes",
        "the mask is left to the loss",
        (LOSS, "    loss = nn.functional.cross_entropy(logits, y, ignore_index=-100)\n"),
    ),
    ("classes", "the history is kept on the device", (HISTORY, "    history.append(norm.detach())\n")),
    (
        "classes",
        "the best is kept on the device",
        (BEST, "    best = torch.minimum(loss.detach(), torch.as_tensor(best))\n"),
    ),
    (
        "classes",
        "the best by one read",
        (BEST, "    value = loss.item()\n    if value < best:\n        best = value\n"),
    ),
    ("classes", "made on the device", ("    norm = torch.zeros((), device=device)\n", "")),
    (
        "classes",
        "a copy that is not waited for",
        (UPLOAD, UPLOAD.replace("to(device)", "to(device, non_blocking=True)")),
    ),
    ("classes", "gradients are None", ("    optimizer.zero_grad()\n", "    optimizer.zero_grad(set_to_none=True)\n")),
    (
        "classes",
        "cleared one by one",
        ("    optimizer.zero_grad()\n", "    for p in model.parameters():\n        p.grad = None\n"),
    ),
    (
        "classes",
        "all tensors at once in the optimizer",
        ("Adam(model.parameters(), 1e-2)", "Adam(model.parameters(), 1e-2, foreach=True)"),
    ),
    ("classes", "norms of all at once", (CLIPPED, CLIPPED.replace("1.0)", "1.0, foreach=True)"))),
    ("classes", "reads stand behind the print's condition", (SUM, ""), (BEST, BEST + SUM)),
    ("classes", "two lines that know nothing of each other change places", (CORRECT + SEEN, SEEN + CORRECT)),
    ("classes", "a function for a method", ("(logits.argmax(1) == y)", "torch.eq(torch.argmax(logits, dim=1), y)")),
    ("classes", "counted without a sum", (SEEN, "    seen += int(torch.count_nonzero(mask))\n")),
    ("classes", "nothing is printed in between", (SUM, "    value = loss.item()\n    total += value\n")),
    (
        "adversaries",
        "reads of a step at once",
        (REAL, "    d_x = score.mean().detach()\n"),
        (GUESSED, "    d_g = score.mean().detach()\n"),
        (PRINTED, PRINTED_AT_ONCE),
    ),
    (
        "adversaries",
        "the sum of both losses on the device",
        (PRINTED, PRINTED.replace("of_real.item() + of_fake.item()", "(of_real + of_fake).item()")),
    ),
    (
        "adversaries",
        "noise is added up on the device",
        ("    noise_seen += noise.abs().mean().item()\n", "    noise_seen += noise.abs().mean()\n"),
    ),
    (
        "adversaries",
        "targets of another maker",
        ("    of_real = nn", "    target = torch.ones(16, 1, device=device)\n    of_real = nn"),
    ),
    (
        "adversaries",
        "detached before the call",
        ("    score = critic(fake.detach())\n", "    still = fake.detach()\n    score = critic(still)\n"),
    ),
    (
        "policy",
        "the largest gradient of all at once",
        (
            LARGEST,
            "    largest = max(largest, torch.stack([p.grad.abs().max() for p in policy.parameters()]).max().item())\n",
        ),
    ),
    ("policy", "averaged by lerp", (AVERAGED, "            q.lerp_(p, 0.05)\n")),
    ("policy", "a copy in place of a view", ("    state = state - mean\n", "    state = state.clone().sub_(mean)\n")),
    (
        "policy",
        "NaN is looked for by the host",
        (NAN, '    if loss.item() != loss.item():\n        raise SystemExit("NaN")\n'),
    ),
    ("policy", "NaN is looked for in the end", (NAN, "")),
    (
        "policy",
        "meters on the device",
        (METERS, METERS.replace("loss.item()", "loss.detach()").replace("entropy.item()", "entropy.detach()")),
    ),
    (
        "policy",
        "a gradient is clamped by a function",
        ("        p.grad.clamp_(-0.5, 0.5)\n", "        p.grad = torch.clamp(p.grad, min=-0.5, max=0.5)\n"),
    ),
    (
        "policy",
        "a count by the host's own sum",
        ("    kept = int((action == 0).sum())\n", "    kept = sum(row[0] == 0 for row in action.tolist())\n"),
    ),
)
REWRITES: Sequence[Rewrite] = (
    *(_of(program, WRONG, says, *edits) for program, says, *edits in WRONG_ONES),
    *(_of(program, RIGHT, says, *edits) for program, says, *edits in RIGHT_ONES),
)


def judged(
    rewrites: Sequence[Rewrite], seed: int = 0, in_one: bool = False, varying: str = "", steps: int | None = None
) -> Iterator[tuple[Rewrite, str, str]]:
    """What is said of each: `equal`, `within` or `changed`, and why. A program as written is run once for all of its own.

    `varying` is one of `VARYING`, or none; so many `steps` are compared, or as many as `verify` thinks right.
    """

    def text(written: str) -> str:
        if in_one:
            written = re.sub(r"(STEPS, EACH = |for step in range\()1[46]", r"\g<1>400", written)
        return written.replace("import torch\n", "import torch, varying_sums\n", 1) if varying else written

    until = time.monotonic() + 3600
    with tempfile.TemporaryDirectory() as folder, Processes(until, lambda line: None) as processes:
        sums = (FOLDER / "varying_sums.py").read_text()
        Path(folder, "varying_sums.py").write_text(sums.replace("ALWAYS = False", f"ALWAYS = {varying == VARYING[-1]}"))
        for name in dict.fromkeys(rewrite.program for rewrite in rewrites):
            path = Path(folder, f"{name}.py")
            path.write_text(text((FOLDER / f"{name}.py").read_text()))
            program = Program(str(path), device="cpu")
            runs = Runs(
                program, Settings(3600, seed=seed, steps=steps), processes, lambda what: None, Verification(name)
            )
            compared = Compared(runs)
            compared.as_written()
            for number, rewrite in enumerate(rewrites):
                if rewrite.program != name:
                    continue
                other = Path(folder, f"{name}_{number}.py")
                other.write_text(text(rewrite.made()))
                runs.other = Program(str(other), device="cpu")
                compared.values.pop(OTHER, None)
                runs.failed.pop(OTHER, None)
                if in_one:
                    compared.begin_anew([OTHER])
                    if compared.is_equal_beside(OTHER):
                        yield rewrite, EQUAL, "in one process"
                        continue
                try:
                    compared.values[OTHER] = values_of(runs.run("values", OTHER))
                except RunFailedError as error:
                    yield rewrite, CHANGED, f"it fails: {error.why}"
                    continue
                values, why, _ = compared.judge(OTHER, rounds=True, safe=False)
                yield rewrite, values, " ".join(filter(None, (why, runs.found.why_values, runs.found.why_way)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of what a rewrite says")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--in-one", action="store_true", help="in one process, as far as that can be")
    parser.add_argument("--varying", default="", choices=VARYING, help="sums come in another order each time")
    options = parser.parse_args()
    chosen = [rewrite for rewrite in REWRITES if options.only in rewrite.says]
    missed = 0
    counts, ways = {WRONG: 0, RIGHT: 0}, Counter[str]()
    for rewrite, values, why in judged(chosen, options.seed, options.in_one, options.varying):
        is_told = (values != CHANGED) == rewrite.is_right
        missed += not is_told
        counts[rewrite.is_right] += is_told
        ways["in one process" if why.startswith("in one process") else "in runs of their own"] += 1
        kind = "right" if rewrite.is_right else "wrong"
        print(f"{'  ' if is_told else '! '}{kind} {values:8} {rewrite.program}: {rewrite.says}  {why}", flush=True)
    wrong, right = (sum(rewrite.is_right == kind for rewrite in chosen) for kind in (WRONG, RIGHT))
    print(f"refused: {counts[WRONG]} of {wrong} wrong rewrites; passed: {counts[RIGHT]} of {right} right ones")
    print("values were compared", "; ".join(f"{way} {count} times" for way, count in ways.most_common()))
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
