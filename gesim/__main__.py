"""``python -m gesim`` is the `gesim` command."""

from gesim.cli.main import main

if __name__ == "__main__":
    main()
