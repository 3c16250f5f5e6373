"""Which schedule is the best on a device: the search for it, the problems that are looked at, and what was found, kept."""
