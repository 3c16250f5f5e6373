"""One hazard, one file: prose, which sites it claims, examples, and the rewrite."""
