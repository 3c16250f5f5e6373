"""One kind of recording, one file; all of them yield a `Trace`."""
