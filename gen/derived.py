"""``python -m gen.derived`` rewrites the files of the tree that are derived from the hardware's declarations."""

from .facts import FACTS_FILE, hardware_facts
from .headers import CONSTANTS_FILE, python_constants
from .regdoc import MANUAL_FILE, manual_with_map


def main() -> None:
    """Rewrite the models' facts, the driver's constants and the tables of the manual."""
    FACTS_FILE.write_text(hardware_facts(), encoding="utf-8")
    CONSTANTS_FILE.write_text(python_constants(), encoding="utf-8")
    MANUAL_FILE.write_text(manual_with_map(MANUAL_FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
