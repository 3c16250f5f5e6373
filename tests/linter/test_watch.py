"""--watch lints again when a file changes, and Ctrl-C ends it with the last exit code."""

import os
import queue
import signal
import subprocess
import sys
import threading

from linter.conftest import READS

PATIENCE = 300  # seconds for what takes one where nothing else runs


def test_a_change_is_seen_and_ctrl_c_ends(door, start):
    path = door.write("train.py", "import torch\n")
    command = [sys.executable, "-m", "syncscope", "lint", "--watch"]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: [said.put(line) for line in process.stdout], daemon=True).start()

    def wait_for(words: str) -> str:
        while words not in (line := said.get(timeout=PATIENCE)):
            pass
        return line

    wait_for("no findings in 1 file")
    wait_for("watching")
    path.write_text(READS)
    wait_for("[host-read]")
    wait_for("watching")
    path.write_text("import torch  # fine again\n")
    wait_for("no findings")
    wait_for("watching")
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) == 0
