"""The operand pairs of the operator tests find faults planted in the operators' source.

Each fault replaces one snippet of a block's source. A snippet that no longer occurs fails the test: rewrite the fault.
"""

import importlib.util

import numpy as np
import pytest

from rtl.arith import BFLOAT16
from sw.golden import arithmetic as golden
from tests.rtl.arith.operands import crossed_corners, exponent_ladder, structured
from tests.rtl.arith.rack import compile_rack

pytestmark = pytest.mark.plants

NARROW = {"format": BFLOAT16}
SATURATING = {"width": 16, "saturate": True}

#: name -> (module, class, parameters, source snippet, what it becomes)
FAULTS = {
    "add_no_rounding": ("fp_add", "FpAdd", {}, "round_up = guard & (rest | fraction[0])", "round_up = C(0, 1)"),
    "add_ties_up": ("fp_add", "FpAdd", {}, "round_up = guard & (rest | fraction[0])", "round_up = guard"),
    "add_ties_down": ("fp_add", "FpAdd", {}, "guard & (rest | fraction[0])", "guard & rest"),
    "add_no_sticky": ("fp_add", "FpAdd", {}, "Cat(dropped, shifted)", "Cat(C(0, 1), shifted)"),
    "add_distance_modulo_32": ("fp_add", "FpAdd", {}, "out = distance[reach:].any()", "out = C(0, 1)"),
    "add_rest_without_bit_1": ("fp_add", "FpAdd", {}, "far[0] | (~left & far[1]) | ", "far[0] | "),
    "add_rest_without_bit_2": ("fp_add", "FpAdd", {}, " | (carry & far[2])", ""),
    "add_no_overflow": ("fp_add", "FpAdd", {}, "carry & (base[:8] == 253)", "C(0, 1)"),
    "add_negative_zero": ("fp_add", "FpAdd", {}, "nan | (close & cancelled)", "nan"),
    "add_signed_nan": ("fp_add", "FpAdd", {}, "positive = nan | (", "positive = ("),
    "add_subnormal_not_stopped": ("fp_add", "FpAdd", {}, "difference | stop", "difference"),
    "add_opposite_infinities": ("fp_add", "FpAdd", {}, " | (a.is_infinite() & b.is_infinite() & subtract)", ""),
    "add_never_close": ("fp_add", "FpAdd", {}, "near & ~difference[p]", "C(0, 1)"),
    "add_flush_keeps_operands": ("fp_add", "FpAdd", {"flush_subnormals": True}, "flush=flush", "flush=False"),
    "add_flush_keeps_results": (
        "fp_add",
        "FpAdd",
        {"flush_subnormals": True},
        "Mux(leading, exact[:f], 0) if flush else exact[:f]",
        "exact[:f]",
    ),
    "multiply_no_rounding": ("fp_multiply", "FpMultiply", {}, "guard & (rest | fraction[0])", "C(0, 1)"),
    "multiply_ties_up": ("fp_multiply", "FpMultiply", {}, "guard & (rest | fraction[0])", "guard"),
    "multiply_no_sticky": ("fp_multiply", "FpMultiply", {}, "rest = sticky | ", "rest = "),
    "multiply_rest_without_window": ("fp_multiply", "FpMultiply", {}, " | (stay & window[0])", ""),
    "multiply_sticky_right_only": (
        "fp_multiply",
        "FpMultiply",
        {},
        "dropped | (below & product[:f].any())",
        "dropped",
    ),
    "multiply_no_overflow": ("fp_multiply", "FpMultiply", {}, "beyond | (limit & top)", "beyond"),
    "multiply_not_stopped": ("fp_multiply", "FpMultiply", {}, "smaller | stop", "smaller"),
    "multiply_far_underflow": ("fp_multiply", "FpMultiply", {}, "exponent < -(1 << reach)", "exponent < -64"),
    "multiply_infinity_by_zero": ("fp_multiply", "FpMultiply", {}, " | (b.is_infinite() & a_zero)", ""),
    "multiply_no_sign": ("fp_multiply", "FpMultiply", {}, "a.sign ^ b.sign", "a.sign"),
    "multiply_lost_leading_one": ("fp_multiply", "FpMultiply", {}, "Mux(b_normal, a.fraction, 0)", "0"),
    "multiply_flush_late": (
        "fp_multiply",
        "FpMultiply",
        {"flush_subnormals": True},
        "vanished | (bottom & ~top)",
        "vanished",
    ),
    "int_add_saturates_low": (
        "int_add",
        "IntAdd",
        {"saturate": True},
        "(~a[-1]).replicate",
        "a[-1].replicate",
    ),
    "int_multiply_lost_cross": (
        "int_multiply",
        "IntMultiply",
        {},
        "low[16:] + cross_a + cross_b",
        "low[16:] + cross_a",
    ),
    "int_multiply_fits_too_often": (
        "int_multiply",
        "IntMultiply",
        {"saturate": True},
        "high.all() | ~high.any()",
        "high[1:].all() | ~high[1:].any()",
    ),
    "int_multiply_unsigned_half": (
        "int_multiply",
        "IntMultiply",
        {"saturate": True},
        "self.a[:16], self.a[16:].as_signed()",
        "self.a[:16], self.a[16:]",
    ),
    "late_by_one": ("fp_add", "FpAdd", {}, "return 4", "return 5"),
    "bf16_add_ties_up": ("fp_add", "FpAdd", NARROW, "guard & (rest | fraction[0])", "guard"),
    "bf16_add_no_sticky": ("fp_add", "FpAdd", NARROW, "Cat(dropped, shifted)", "Cat(C(0, 1), shifted)"),
    "bf16_add_distance_modulo_16": ("fp_add", "FpAdd", NARROW, "out = distance[reach:].any()", "out = C(0, 1)"),
    "bf16_add_signed_nan": ("fp_add", "FpAdd", NARROW, "positive = nan | (", "positive = ("),
    "bf16_multiply_ties_up": ("fp_multiply", "FpMultiply", NARROW, "guard & (rest | fraction[0])", "guard"),
    "bf16_multiply_no_sticky": ("fp_multiply", "FpMultiply", NARROW, "rest = sticky | ", "rest = "),
    "bf16_multiply_far_underflow": (
        "fp_multiply",
        "FpMultiply",
        NARROW,
        "exponent < -(1 << reach)",
        "exponent < -64",
    ),
    "bf16_multiply_flush_late": (
        "fp_multiply",
        "FpMultiply",
        {**NARROW, "flush_subnormals": True},
        "vanished | (bottom & ~top)",
        "vanished",
    ),
    "int8_add_without_sign": ("int_add", "IntAdd", {"width": 8}, "sign_extended(self._register(m", "(self._register(m"),
    "int16_add_saturates_low": (
        "int_add",
        "IntAdd",
        {"width": 16, "saturate": True},
        "(~a[-1]).replicate",
        "a[-1].replicate",
    ),
    "int16_multiply_unsigned": (
        "int_multiply",
        "IntMultiply",
        SATURATING,
        "self.a[:width].as_signed()",
        "self.a[:width]",
    ),
    "int16_multiply_fits_too_often": (
        "int_multiply",
        "IntMultiply",
        SATURATING,
        "product[: width - 1], product[width - 1 :]",
        "product[: width - 1], product[width:]",
    ),
}


def broken(folder, name, module, class_name, parameters, snippet, replacement):
    """An operator built from a copy of the block's source with the snippet replaced."""
    source = importlib.util.find_spec(f"rtl.arith.{module}").loader.get_source(f"rtl.arith.{module}")
    assert snippet in source, f"fault {name}: rtl/arith/{module}.py has no {snippet!r}"
    path = folder / f"{name}.py"
    path.write_text(source.replace(snippet, replacement))
    # Named as a sibling of the original, so that its relative imports work.
    spec = importlib.util.spec_from_file_location(f"rtl.arith.{name}", path)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return getattr(copy, class_name)(**parameters)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Operands, and the results of every broken operator."""
    folder = tmp_path_factory.mktemp("faults")
    run = compile_rack({name: broken(folder, name, *fault) for name, fault in FAULTS.items()})
    pairs = [crossed_corners(), exponent_ladder(), structured(np.random.default_rng(5), 100_000)]
    a, b = (np.concatenate([pair[side] for pair in pairs]) for side in range(2))
    return a, b, run(a, b)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(outcome, name):
    _, class_name, parameters, _, _ = FAULTS[name]
    a, b, results = outcome
    operator = golden.add if class_name.endswith("Add") else golden.multiply
    if class_name.startswith("Fp"):
        value = ("bf16" if "format" in parameters else "fp32") + ("_flush" if "flush_subnormals" in parameters else "")
    else:
        value = f"int{parameters.get('width', 32)}" + ("_saturate" if "saturate" in parameters else "")
    assert (results[name] != operator(a, b, value=value)).any()
