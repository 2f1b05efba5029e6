"""Design or block to an IP-XACT component (IEEE 1685-2014): ports, bus interfaces, registers and files."""

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Xml

from rtl.regs.map import REGISTERS
from rtl.regs.register import Access

from . import __version__
from .headers import word_fields
from .ports import Port

__all__ = ["component"]

NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
# Bus definitions of their owners: prefix of the ports, vendor, library, name and version of the bus, and who begins a transfer.
BUSES = {
    "s_axil": ("amba.com", "AMBA4", "AXI4-Lite", "r0p0_0", "slave"),
    "m_axi": ("amba.com", "AMBA4", "AXI4", "r0p0_0", "master"),
}
REGISTER_MAP = "registers"
REGISTER_BYTES = 4096
ACCESS = {
    Access.READ: "read-only",
    Access.READ_WRITE: "read-write",
    Access.PULSE: "write-only",
    Access.CLEAR: "read-write",
}


def component(
    name: str,
    *,
    library: str,
    description: str,
    ports: Sequence[Port],
    files: Mapping[str, Sequence[str]],
    registers: bool,
) -> str:
    """The component as XML.

    Parameters
    ----------
    name : of the top module. library : ``accelerator`` or ``block``. files : by their IP-XACT type, in the order of compilation.
    registers : whether the accelerator's registers are behind its AXI4-Lite port.
    """
    Xml.register_namespace("ipxact", NAMESPACE)
    root = Xml.Element(_tag("component"))
    for tag, text in (("vendor", "fiberloom"), ("library", library), ("name", name), ("version", __version__)):
        _add(root, tag, text)
    buses = [bus for bus in BUSES if any(port.name.startswith(f"{bus}_") for port in ports)]
    if buses:
        interfaces = _add(root, "busInterfaces")
        for bus in buses:
            _interface(interfaces, bus, ports, registers)
    if any(BUSES[bus][4] == "master" for bus in buses):
        space = _add(_add(root, "addressSpaces"), "addressSpace")
        _add(space, "name", "memory")
        width = next(port.width for port in ports if port.name == "m_axi_araddr")
        _add(space, "range", f"'h{1 << width:x}")
        _add(space, "width", next(port.width for port in ports if port.name == "m_axi_rdata"))
    if registers:
        _register_map(root)
    model = _add(root, "model")
    view = _add(_add(model, "views"), "view")
    _add(view, "name", "rtl")
    _add(view, "componentInstantiationRef", "verilog")
    made = _add(_add(model, "instantiations"), "componentInstantiation")
    _add(made, "name", "verilog")
    _add(made, "language", "SystemVerilog")
    _add(made, "moduleName", name)
    _add(_add(made, "fileSetRef"), "localName", "rtl")
    pins = _add(model, "ports")
    for port in ports:
        _port(pins, port)
    sets = _add(_add(root, "fileSets"), "fileSet")
    _add(sets, "name", "rtl")
    for kind, paths in files.items():
        for path in paths:
            file = _add(sets, "file")
            _add(file, "name", path)
            _add(file, "fileType", kind)
    _add(root, "description", description)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _add(parent: Xml.Element, tag: str, text: object = None, **attributes: str) -> Xml.Element:
    found = Xml.SubElement(parent, _tag(tag), attributes)
    found.text = None if text is None else str(text)
    return found


def _interface(parent: Xml.Element, bus: str, ports: Sequence[Port], registers: bool) -> None:
    """One bus with its ports by the names that its definition has for them."""
    vendor, library, name, version, role = BUSES[bus]
    found = _add(parent, "busInterface")
    _add(found, "name", bus)
    _add(found, "busType", vendor=vendor, library=library, name=name, version=version)
    abstraction = _add(_add(found, "abstractionTypes"), "abstractionType")
    _add(abstraction, "abstractionRef", vendor=vendor, library=library, name=f"{name}_rtl", version=version)
    maps = _add(abstraction, "portMaps")
    mine = [port for port in ports if port.name.startswith(f"{bus}_")]
    for logical, physical in [
        *(
            ("ACLK" if port.name == "aclk" else "ARESETn", port.name)
            for port in ports
            if port.name in ("aclk", "aresetn")
        ),
        *((port.name.removeprefix(f"{bus}_").upper(), port.name) for port in mine),
    ]:
        pair = _add(maps, "portMap")
        _add(_add(pair, "logicalPort"), "name", logical)
        _add(_add(pair, "physicalPort"), "name", physical)
    side = _add(found, role)
    if role == "slave" and registers:
        _add(side, "memoryMapRef", memoryMapRef=REGISTER_MAP)
    elif role == "master":
        _add(side, "addressSpaceRef", addressSpaceRef="memory")


def _register_map(root: Xml.Element) -> None:
    memory = _add(_add(root, "memoryMaps"), "memoryMap")
    _add(memory, "name", REGISTER_MAP)
    block = _add(memory, "addressBlock")
    _add(block, "name", REGISTER_MAP)
    _add(block, "baseAddress", "'h0")
    _add(block, "range", f"'h{REGISTER_BYTES:x}")
    _add(block, "width", 32)
    _add(block, "usage", "register")
    for register in REGISTERS:
        for word, (name, offset) in enumerate(register.words):
            found = _add(block, "register")
            _add(found, "name", name)
            _add(found, "description", register.description)
            _add(found, "addressOffset", f"'h{offset:x}")
            _add(found, "size", 32)
            for item, high, low in word_fields(register, word):
                field = _add(found, "field")
                _add(field, "name", item.name)
                _add(field, "description", item.description)
                _add(field, "bitOffset", low)
                _add(field, "bitWidth", high - low + 1)
                _add(field, "access", ACCESS[item.access])
    _add(memory, "addressUnitBits", 8)


def _port(parent: Xml.Element, port: Port) -> None:
    found = _add(parent, "port")
    _add(found, "name", port.name)
    wire = _add(found, "wire")
    _add(wire, "direction", "in" if port.is_input else "out")
    if port.width != 1:
        vector = _add(_add(wire, "vectors"), "vector")
        _add(vector, "left", port.width - 1)
        _add(vector, "right", 0)
