"""`python -m pipeline`: the same program as `veedor`."""

from pipeline.cli import main

if __name__ == "__main__":
    main()
