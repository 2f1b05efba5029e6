"""A module around a block whose ports are the members of the block's signature, each in one piece.

A block's Verilog has a port for each field. Benches set and read a payload at once: from Python every handle costs time.
"""

import re
from collections.abc import Mapping
from typing import Any

from gen.ports import members

__all__ = ["packed"]

_PIN = r"(?m)^  input  logic {}\b"


def packed(block: Any, sources: Mapping[str, str], top: str) -> tuple[dict[str, str], str]:
    """The files with that module behind the others, and its name; as they are where no member has fields.

    Parameters
    ----------
    block: instance of ``rtl.lib.block.Block``.
    sources, top: its Verilog by file name, and the name of its module.
    """
    found = members(block)
    if not any(member.is_split for member in found):
        return dict(sources), top
    own = next(text for text in sources.values() if re.search(rf"(?m)^module {top}\b", text))
    clocks = [pin for pin in ("clk", "rst") if re.search(_PIN.format(pin), own)]
    declared = [f"input  wire {pin}" for pin in clocks]
    pins = [f".{pin}({pin})" for pin in clocks]
    for member in found:
        width = len(member.value)
        whole = f"[{width - 1}:0] " if width > 1 else ""
        declared.append(f"{'input ' if member.is_input else 'output'} wire {whole}{member.name}")
        for port in member.ports:
            bits = f"[{port.low + port.width - 1}:{port.low}]" if port.width < width else ""
            pins.append(f".{port.name}({member.name}{bits})")
    name = f"{top}_packed"
    lines = [f"module {name} (", ",\n".join(f"  {line}" for line in declared), ");"]
    lines += [f"  {top} block (", ",\n".join(f"    {pin}" for pin in pins), "  );", "endmodule", ""]
    return {**sources, f"{name}.sv": "\n".join(lines)}, name
