"""The published cases are not part of Fiberloom: they are compared where FIBERLOOM_SPARSELOOP names their folder."""

import os

collect_ignore = [] if os.environ.get("FIBERLOOM_SPARSELOOP") else ["test_reference.py"]
