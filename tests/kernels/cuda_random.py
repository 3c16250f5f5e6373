"""What CUDA draws, by name: `python tests/kernels/cuda_random.py > tests/kernels/cuda_random.json` on a GPU writes the table.

Of each draw a digest of all its bytes, and its first and last elements.
"""

import hashlib
import json

import torch
from torch.nn import functional as F

SEED = 12345678901
SIZES = (5, 1000, 300_000)


def draws(d):
    """Functions of nothing, by name, each of which draws on a device."""

    def empty(n, dtype=torch.float32):
        return torch.empty(n, device=d, dtype=dtype)

    kinds = {
        "rand": lambda n: torch.rand(n, device=d),
        "randn": lambda n: torch.randn(n, device=d),
        "rand double": lambda n: torch.rand(n, device=d, dtype=torch.float64),
        "randn double": lambda n: torch.randn(n, device=d, dtype=torch.float64),
        "rand half": lambda n: torch.rand(n, device=d, dtype=torch.float16),
        "randn bfloat16": lambda n: torch.randn(n, device=d, dtype=torch.bfloat16),
        "uniform -3 5": lambda n: empty(n).uniform_(-3, 5),
        "normal 2 3": lambda n: empty(n).normal_(2, 3),
        "bernoulli .3": lambda n: empty(n).bernoulli_(0.3),
        "bernoulli bool": lambda n: empty(n, torch.bool).bernoulli_(0.3),
        "bernoulli each": lambda n: torch.bernoulli(torch.linspace(0, 1, n).to(d)),
        "exponential 2": lambda n: empty(n).exponential_(2),
        "cauchy": lambda n: empty(n).cauchy_(1, 2),
        "log_normal": lambda n: empty(n).log_normal_(0.5, 0.25),
        "randint 0 37": lambda n: torch.randint(0, 37, (n,), device=d),
        "randint int32": lambda n: torch.randint(-5, 90, (n,), device=d, dtype=torch.int32),
        "randint wide": lambda n: torch.randint(-5, 1 << 40, (n,), device=d),
        "random int64": lambda n: empty(n, torch.int64).random_(),
        "random float": lambda n: empty(n).random_(),
        "random half": lambda n: empty(n, torch.float16).random_(),
        "random uint8": lambda n: empty(n, torch.uint8).random_(),
        "random full": lambda n: empty(n, torch.int64).random_(-(1 << 63), None),
        "randperm": lambda n: torch.randperm(n, device=d),
        "dropout .4": lambda n: F.dropout(torch.ones(n, device=d), 0.4),
        "dropout half": lambda n: F.dropout(torch.ones(n, device=d, dtype=torch.float16), 0.4),
        "dropout double": lambda n: F.dropout(torch.ones(n, device=d, dtype=torch.float64), 0.4),
        "rrelu": lambda n: F.rrelu(-torch.ones(n, device=d), training=True),
        "dropout2d": lambda n: F.dropout2d(torch.ones(n, 2, 1, 1, device=d), 0.4),
    }
    return {f"{name} {n}": (lambda make=make, n=n: make(n)) for n in SIZES for name, make in kinds.items()}


def seen(x):
    """Of a tensor on the CPU: a digest, and some elements."""
    flat = x.contiguous().reshape(-1)
    digest = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()[:16]
    return {"digest": digest, "some": torch.cat((flat[:6], flat[-2:])).tolist()}


def main():
    table = {}
    for name, make in draws("cuda").items():
        torch.cuda.manual_seed(SEED)
        table[name] = seen(make().cpu())
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items())
    print("{\n" + lines + "\n}")


if __name__ == "__main__":
    main()
