"""Seconds until the first step of a network has ended, with nothing built before, and in the next process.

    python benchmarks/first_step.py [NETWORK...] --batch 64 --ways beside,ahead,now

Each way to build kernels (`SYNCSCOPE_OCL_BUILDS`) begins with empty caches, the driver's among them. Prints seconds of the
import with its self-test (cold only), of the model and its data, of the first step and of the second, and how many kernels
were built.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any


def child(name: str, batch: int) -> None:
    """Prints a line of JSON: seconds of each part."""
    import torch  # no part of the device

    begin = time.perf_counter()
    from syncscope.bench import measure, networks

    synchronize, about = measure.prepare("ocl")
    at = [begin, time.perf_counter()]
    task = networks.task(name, "ocl", batch)
    synchronize()
    at.append(time.perf_counter())
    for _ in range(2):
        task.step()
        synchronize()
        at.append(time.perf_counter())
    from syncscope.kernels import programs

    built = programs.build.cache_info().currsize
    parts = dict(zip(("import", "model", "first", "second"), (b - a for a, b in itertools.pairwise(at)), strict=True))
    print(json.dumps(parts | {"kernels": built, "about": about["name"], "torch": torch.__version__}))


def ran(name: str, batch: int, environment: dict[str, str]) -> dict[str, Any]:
    """What a process of its own says."""
    command = [sys.executable, "-W", "ignore", __file__, name, "--batch", str(batch), "--child"]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=["resnet18"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--ways", default="beside", help="separated by commas: beside, ahead, now")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.networks[0], options.batch)
        return
    for name in options.networks:
        for way in options.ways.split(","):
            with tempfile.TemporaryDirectory() as empty:
                caches = {key: f"{empty}/{key}" for key in ("CUDA_CACHE_PATH", "POCL_CACHE_DIR", "SYNCSCOPE_CACHE_DIR")}
                for path in caches.values():
                    os.mkdir(path)
                environment = os.environ | caches | {"SYNCSCOPE_OCL_BUILDS": way}
                for when in ("cold", "again"):
                    of = ran(name, options.batch, environment)
                    times = ", ".join(f"{key} {of[key]:.2f}" for key in ("import", "model", "first", "second"))
                    print(
                        f"{name} {options.batch} {way:6} {when:5} {times} s, {of['kernels']} kernels, {of['about']}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
