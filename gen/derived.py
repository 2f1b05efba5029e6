"""``python -m gen.derived`` rewrites the files of the tree that are derived from the hardware's declarations."""

from rtl.regs import converter_map

from .facts import FACTS_FILE, hardware_facts
from .headers import CONSTANTS_FILE, CONVERTER_FILE, converter_constants, python_constants
from .regdoc import CONVERTER_PAGE, MANUAL_FILE, manual_with_map, register_map


def main() -> None:
    """Rewrite the models' facts, the drivers' constants and the tables of the manual."""
    FACTS_FILE.write_text(hardware_facts(), encoding="utf-8")
    CONSTANTS_FILE.write_text(python_constants(), encoding="utf-8")
    CONVERTER_FILE.write_text(converter_constants(), encoding="utf-8")
    maps = (MANUAL_FILE, register_map()), (CONVERTER_PAGE, register_map(converter_map.REGISTERS, converter_map.ERRORS))
    for page, text in maps:
        page.write_text(manual_with_map(page.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
