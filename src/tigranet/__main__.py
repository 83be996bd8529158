"""Run the command line: ``python -m tigranet`` is the same as ``tigranet``."""

from tigranet.cli import main

if __name__ == "__main__":
    main()
