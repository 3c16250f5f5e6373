"""Bytes to findings to fixed bytes."""
