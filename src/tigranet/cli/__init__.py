"""The ``tigranet`` command: one file per command, each of which parses its options, calls a workflow and prints.

Nothing here loads PyTorch before a command runs, so that ``tigranet --help`` starts fast.
"""

from tigranet.cli.stopping import stop_on_signals

__all__ = ["main"]


def main() -> None:
    """Run the command. Ctrl-C and SIGTERM stop it without a traceback, also while its modules are being imported."""
    with stop_on_signals():
        from tigranet.cli.app import main as run_application

        run_application()
