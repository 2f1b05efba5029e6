"""Operands: reading matrices and turning their values into the accelerator's."""

from .errors import MissingToolError, OperandError, UserError
from .load import load
from .operand import Operand, to_csr, to_design_values

__all__ = ["MissingToolError", "Operand", "OperandError", "UserError", "load", "to_csr", "to_design_values"]
