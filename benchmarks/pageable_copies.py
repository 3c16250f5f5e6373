"""How much memory that is not pinned CUDA takes over at once: `python benchmarks/pageable_copies.py`, on a GPU.

For how long the host is held by a copy towards the device while that is busy for a fifth of a second, as a share of that: with
`non_blocking=True` and without, of one tensor and of ten. 0 % is a copy that nobody waits for. Last stands the largest that is
taken over at once. What is copied is written afterwards, and compared: what had not been taken over would be wrong.
"""

from __future__ import annotations

import time

import torch

SIZES = [4 << n for n in range(14)]  # KB
BUSY = 400_000_000  # clock ticks


def held(kilobytes: int, copies: int, non_blocking: bool) -> float:
    """The share of the device's busy time for which the host is held."""
    source = torch.randn(kilobytes * 256)
    kept, shares = source.clone(), list[float]()
    for _ in range(4):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        torch.cuda._sleep(BUSY)
        asked = time.perf_counter()
        moved = [source.to("cuda", non_blocking=non_blocking) for _ in range(copies)]
        gone = time.perf_counter()
        source.fill_(7.0)
        torch.cuda.synchronize()
        shares.append((gone - asked) / (time.perf_counter() - begin))
        assert all(torch.equal(each.cpu(), kept) for each in moved), f"{kilobytes} KB were written too early"
        source.copy_(kept)
    return sorted(shares[1:])[1]  # the first one is for memory


def main() -> int:
    if not torch.cuda.is_available():
        print("there is no CUDA device here")
        return 2
    ways = {"to(d)": (1, False), "non_blocking": (1, True), "ten of them": (10, True)}
    print(f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}\n{'KB':>8}" + "".join(f"{n:>14}" for n in ways))
    most = 0
    for kilobytes in SIZES:
        shares = [held(kilobytes, copies, how) for copies, how in ways.values()]
        most = kilobytes if shares[1] < 0.1 else most
        print(f"{kilobytes:>8}" + "".join(f"{100 * share:>13.0f}%" for share in shares), flush=True)
    print(f"taken over at once: up to {most:,} KB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
