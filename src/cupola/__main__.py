"""``python -m cupola``: the same as the ``cupola`` command."""

import sys

from cupola.cli import main

sys.exit(main())
