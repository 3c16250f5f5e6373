"""Kernels written for the work at hand: tiled contractions, their schedules, and the search for better ones."""
