"""``python -m sktensor_dp``, where the command is not on the path."""

import sys

from sktensor_dp.cli import main

if __name__ == "__main__":
    sys.exit(main())
