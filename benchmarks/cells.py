"""Maps blocks to a standard-cell library: area and delay between registers, by Yosys and ABC.

    python -m benchmarks.cells --liberty /usr/share/qflow/tech/osu018/osu018_stdcells.lib
    python -m benchmarks.cells --liberty LIBRARY --only adder --only controller

The library is any Liberty file with combinational cells and D flip-flops. Debian and Ubuntu have open ones in the packages
``qflow-tech-osu018``, ``osu035`` and ``osu050`` (0.18 to 0.5 um). Each block is flattened, with everything below it.
Memories of ``MEMORY_WORDS`` words and more stay memories, as for macros: paths begin and end there at once, and their area is not
counted. ABC sizes and buffers cells for the shortest delay under a load; wires have no delay. Its delay is that of the logic
between two registers: what the flip-flops take themselves, their clock to output and setup, is added by the library's user.
"""

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table_markers import PrintedTable, benchmark_parser
from benchmarks.timing import TABLE, table_module
from gen.design import DesignError
from gen.platform import EmittedModule
from gen.yosys import ToolError, quoted, run_jobs

MEMORY_WORDS = 16
#: A driver and a load for every port; picofarad.
CONSTRAINTS = "set_driving_cell {cell}\nset_load 0.05 [all_outputs]\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = benchmark_parser(__file__, __doc__)
    parser.add_argument("--liberty", type=Path, required=True, metavar="FILE", help="the cell library")
    parser.add_argument("--driver", default="BUFX4", metavar="CELL", help="the cell that drives the inputs")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="rows that hold the word")
    options = parser.parse_args(arguments)
    if not options.liberty.is_file():
        raise ToolError(f"There is no library {options.liberty}; Debian: apt-get install qflow-tech-osu018")
    printed = PrintedTable(parser, options)
    printed.head(("block", "cells", "flip-flops", "area", "delay, ns"))
    for label, config, what in TABLE:
        if options.only and not any(word in label for word in options.only):
            continue
        name, modules = table_module(config, what)
        cells, flip_flops, area, delay = mapped(name, modules, options.liberty, options.driver)
        printed.row((label, f"{cells:,}", f"{flip_flops:,}", f"{area:,.0f}", f"{delay:.2f}"))
    printed.write()
    return 0


def mapped(name: str, modules: dict[str, EmittedModule], liberty: Path, driver: str) -> tuple[int, int, float, float]:
    """Cells, how many of them are flip-flops, area in the library's unit, delay in nanoseconds."""
    with tempfile.TemporaryDirectory(prefix="fiberloom-") as scratch:
        folder = Path(scratch)
        text = "".join(module.rtlil for module in modules.values())
        (folder / "design.il").write_text(text, encoding="utf-8")
        (folder / "constraints").write_text(CONSTRAINTS.format(cell=driver), encoding="utf-8")
        library = quoted(liberty)
        run_jobs(
            [
                [
                    f"read_rtlil {quoted(folder / 'design.il')}",
                    f"hierarchy -check -top {name}",
                    "synth -flatten -run begin:fine",
                    f"chtype -set memory t:$mem_v2 r:SIZE>={MEMORY_WORDS} %i",
                    "synth -run fine:check",
                    f"dfflibmap -liberty {library}",
                    f"tee -q -o {quoted(folder / 'abc.log')} "
                    f"abc -liberty {library} -constr {quoted(folder / 'constraints')} -D 1",
                    "opt_clean -purge",
                    f"tee -q -o {quoted(folder / 'registers')} select -count t:*DFF*",
                    f"tee -q -o {quoted(folder / 'cells.json')} stat -json -liberty {library}",
                ]
            ]
        )
        found = json.loads((folder / "cells.json").read_text())["design"]
        delays = re.findall(r"Delay =\s*([\d.]+) ps", (folder / "abc.log").read_text(encoding="utf-8"))
        registers = re.search(r"(\d+) objects", (folder / "registers").read_text(encoding="utf-8"))
    kept = found["num_cells_by_type"].get("memory", 0)
    return (
        found["num_cells"] - kept,
        int(registers[1]) if registers else 0,
        float(found["area"]),
        float(delays[-1]) / 1000 if delays else 0.0,
    )


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except (DesignError, ToolError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
