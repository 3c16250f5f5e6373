"""How hard random tests look: `make fuzz` sets SYNCSCOPE_EFFORT, and they draw so many times as many examples."""

import os

EFFORT = int(os.environ.get("SYNCSCOPE_EFFORT", "1"))
