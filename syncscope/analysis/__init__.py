"""Pure functions over a `Trace`."""
