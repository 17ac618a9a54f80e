"""`python -m querent`: the command line."""

from ._command_line import main

main()
