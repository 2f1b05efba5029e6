"""A module's ports as an instance to copy: the template that people paste into their own design."""

from collections.abc import Sequence

from .ports import Port

__all__ = ["INSTANCE", "instance"]

INSTANCE = "docs/instance.sv"


def instance(top: str, ports: Sequence[Port], origin: str) -> str:
    """Nets with the ports' names and widths, and an instance that they are connected to."""
    names = [f"  logic {_range(port.width)}{port.name};" for port in ports]
    wide = max(len(port.name) for port in ports)
    joined = [f"      .{port.name:<{wide}} ({port.name})" for port in ports]
    return "\n".join(
        [
            f"// Instantiation template of `{top}`: put it into a module, then drive its inputs and use its outputs.",
            f"// {origin}",
            "",
            "  // Inputs.",
            *(line for line, port in zip(names, ports, strict=True) if port.is_input),
            "  // Outputs.",
            *(line for line, port in zip(names, ports, strict=True) if not port.is_input),
            "",
            f"  {top} {top}_instance (",
            ",\n".join(joined),
            "  );",
            "",
        ]
    )


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width != 1 else ""
