"""What a step gains by a fix, and why that is little: then it is told in a line, or left to people."""
