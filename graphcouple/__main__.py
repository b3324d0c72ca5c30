"""Run the command: ``python -m graphcouple``."""

from graphcouple.cli import main

if __name__ == "__main__":
    main()
