# amaranth: UnusedElaboratable=no
"""Blocks of the converter, each alone: pauses on all ports, empty, one entry, full, ragged, widest, and what is wrong."""

import importlib

import pytest

from tests.rtl.mint.converter.checks import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_block(check):
    check(*(getattr(importlib.import_module(f"rtl.mint.converter.{module}"), name) for module, name in CHECKS[check]))
