"""The command `querent`: the same command line as the binary's, in this process."""

import os
import signal
import sys


def main() -> None:
    """Runs the command line with this process's arguments, and ends with its exit code."""
    # The command line waits for signals itself: Python's own handlers would only note them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from . import _querent

    program = os.path.abspath(sys.argv[0])
    if not os.access(program, os.X_OK):
        program = "querent"
    code = _querent.run_command_line([program, *sys.argv[1:]])
    sys.stdout.flush()
    # Nothing of the interpreter is left to do, and threads of the engine may still be ending.
    os._exit(code)
