"""What people call vectors of numbers, one of each sequence of a batch: it says how many dimensions one most likely has."""

import re

_LENGTHS = re.compile(r"(^|_)\w?(lengths|lens)$")


def are_lengths(name: str) -> bool:
    """Whether people call so the lengths of several sequences: `lengths`, `ilens`, `feats_lengths`."""
    return _LENGTHS.search(name.lower()) is not None
