"""Kernels written for the work at hand: tiled contractions, in the shape of a GPU and of a CPU."""
