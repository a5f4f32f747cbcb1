"""Starts the command line, and ends quietly where Ctrl-C comes before that has loaded."""

import sys


def main() -> None:
    """Run one command and exit; an interruption ends it with 130, at whatever moment."""
    try:
        from kg_server.cli import main as run  # noqa: PLC0415 - most of the time that an interruption may come in

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
