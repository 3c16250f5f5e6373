"""A buffer of the device that is filled row by row from the host is told what is done about it."""

import pytest

CODE = """\
    import torch


    class Buffer:
        def __init__(self, size: int):
            self.states = torch.zeros(size, 8, device="cuda")
            self.at = 0

        def add(self, state):
            {write}


    def train(policy: torch.nn.Module, env, optimizer, buffer: Buffer):
        for step in range(100):
            state = env.step(step)
            buffer.add(state)
            policy(buffer.states).mean().backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("write", "row"),
    [
        ("self.states[self.at] = torch.from_numpy(state)", True),
        ("self.states[self.at, :4] = torch.from_numpy(state)", True),
        ("self.states[:] = torch.from_numpy(state)", False),
    ],
)
def test_a_row_that_is_copied_is_told_to_stay_on_the_host(door, write, row):
    door.write("replay.py", CODE.format(write=write))
    out = door("lint", "--all", "replay.py").out
    assert "`torch.from_numpy(state)` copies from the host and waits for it" in out
    assert ("a buffer that is filled row by row is better kept on the host" in out) == row


def test_a_part_of_a_batch_that_is_sent_in_its_place_is_no_row(door) -> None:
    door.write("sent.py", SENT)
    assert "pin the memory and say non_blocking=True" in door("lint", "sent.py").out


SENT = """
import torch
from torch.utils.data import DataLoader

def train(model, data, optimizer, device):
    for batch in DataLoader(data):
        for key, part in batch.items():
            batch[key] = part.to(device)
        loss = model(**batch).mean()
        loss.backward()
        optimizer.step()
"""
