"""Operands of the papers are downloads: they are looked at where FIBERLOOM_OPERANDS names a folder with NAME.npz of each."""

import os

collect_ignore = [] if os.environ.get("FIBERLOOM_OPERANDS") else ["test_tailors_operands.py"]
