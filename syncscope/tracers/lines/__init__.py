"""Which line of Python asks the driver for something: read in C, from the frames that run, without Python's lock."""
