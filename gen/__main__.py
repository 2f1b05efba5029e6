"""``python -m gen DESIGN --out DIR``: the generator without the rest of the command line."""

import argparse
import sys
from pathlib import Path

from .design import DesignError, load_design
from .folder import write_folder
from .lint import lint
from .products import products
from .verilog import FILE_LIST
from .yosys import ToolError

FAILED = 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gen", description="Write the Verilog of a design.")
    parser.add_argument("design", help="name of a shipped design, or a TOML file")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.FIELD=VALUE", help="change a field")
    parser.add_argument("--lint", action="store_true", help="check the files with Verilator's -Wall")
    options = parser.parse_args()
    try:
        texts = products(load_design(options.design, options.set))
        written = write_folder(options.out, texts)
        print(f"{options.design}: {len(written)} files in {options.out}", flush=True)
        if options.lint:
            complaints = lint(options.out, "accelerator", texts[FILE_LIST].split())
            print("\n".join(complaints) or f"{options.design}: no warnings")
            return FAILED if complaints else 0
    except (DesignError, ToolError) as error:
        print(f"python -m gen: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"python -m gen: --out {options.out}: cannot be written ({error.strerror})", file=sys.stderr)
        return DesignError.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
