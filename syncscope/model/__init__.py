"""The nouns of the project: imports the standard library and numpy only."""
