"""What several modules of tests look at and none changes: the generated files of the smallest design."""

import pytest

from gen.design import load_design
from gen.products import products
from gen.verilog import Verilog, emit_design
from tests.gen.designs import SMALLEST


@pytest.fixture(scope="session")
def tiny() -> Verilog:
    return emit_design(load_design("tiny"))


@pytest.fixture(scope="session")
def smallest() -> Verilog:
    return emit_design(load_design("tiny", SMALLEST))


@pytest.fixture(scope="session")
def tiny_products() -> dict[str, str]:
    return products(load_design("tiny"))
