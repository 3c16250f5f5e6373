"""What users write in many ways, one idiom a file: a length, a read, the positions of a mask, a loss."""
