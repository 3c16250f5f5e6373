"""What can be known about a value without running the program: stdlib `ast` only."""
