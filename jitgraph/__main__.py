"""`python -m jitgraph`."""

import sys

from jitgraph.cli import main

sys.exit(main())
