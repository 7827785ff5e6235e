"""``python -m holdfast.cli`` is ``holdfast``."""

from holdfast.cli.main import main

if __name__ == "__main__":
    main()
