"""Formats that a converter reads, those of them in which the accelerator takes A, and what can be wrong with a source."""

from .register import ErrorDescription

__all__ = ["CONVERTED", "SOURCES", "SOURCE_ERRORS"]

#: What FORMATS.source of a converter, and CONVERSION.source of an accelerator, may say, by its value.
SOURCES = ("dense", "coo", "csr", "rlc", "zvc", "csc")
#: Those in which the accelerator takes A. It reads CSR without a conversion, and CSC has another order.
CONVERTED = ("dense", "coo", "rlc", "zvc")

SOURCE_ERRORS: tuple[ErrorDescription, ...] = (
    ErrorDescription(32, "bad_setting", "A register has a value that it must not have.", "offset of the register"),
    ErrorDescription(36, "bad_mask", "The mask has more or fewer bits than there are values.", "bits before it"),
    ErrorDescription(37, "bad_run", "A filler is not the longest run, or is the last pair.", "number of the pair"),
    ErrorDescription(38, "bad_value", "A value is zero where the format has none.", "number of the value"),
)
