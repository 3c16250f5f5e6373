"""The workshop that rules and rewrites stand on.

What is seen of the user's code: `text` (bytes and names of a file) < `enclosure` (who stands where) < `function` (what a name
holds, what a call calls) < `view` (a file with its sites), `pattern` (shapes of code), `proofs` (what surely holds), and
`patterns/`, one family of the user's idioms a file. What is made of it: `draft`, edits of a function as templates, on `splice`.
Only these two import libcst, and only rewrites import them.
"""
