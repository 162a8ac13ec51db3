"""`python -m nereid_model`: runs a model once, outside the server."""

from __future__ import annotations

import sys

from .runner import main

if __name__ == "__main__":
    sys.exit(main())
