"""Networks timed on several devices, each device in a process of its own: what `syncscope bench` prints.

`networks` and `models` say what is trained, `measure` runs in the device's process, `work` says what had to be done and what
the device could, `results` is what comes back, and how it is judged.
"""

OWN = ("unet", "gpt2", "lstm", "dcgan")
"""The networks that need no torchvision."""
