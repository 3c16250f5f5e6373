"""`python -m syncscope` is `syncscope`."""

from syncscope.cli import main

main()
