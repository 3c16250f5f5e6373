"""CUDA's own profiling interface (CUPTI): what the driver is asked for, and what the device does."""
