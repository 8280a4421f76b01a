"""``python -m lptml`` is the command ``lptml``."""

from lptml.cli import main

if __name__ == "__main__":
    main()
