"""A `Trace` from and to the JSON of torch.profiler: reads every dialect of Kineto, writes the one TensorBoard understands."""

from syncscope.kineto.read import read
from syncscope.kineto.write import chunks, save, write

__all__ = ["chunks", "read", "save", "write"]
