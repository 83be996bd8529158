"""The ``tigranet`` command: one file per command, each of which parses its options, calls a workflow and prints.

Nothing here loads PyTorch before a command runs, so that ``tigranet --help`` starts fast.
"""

from tigranet.cli.app import main

__all__ = ["main"]
