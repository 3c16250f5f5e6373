"""The hook in the OpenCL drivers' dispatch tables: its body in C, and in Python; how it gets there, and what it writes."""
