"""One format, one file. A module here has `SUFFIX`, and `export(report)` that returns the text or the bytes of it."""
