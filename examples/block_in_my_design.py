# %% [markdown]
# # Take a block into my design
#
# Blocks of the accelerator work alone. This notebook writes the floating-point adder as Verilog, puts it into a
# small design of our own, and checks with Yosys that both go together.
#
# The script beside the notebook has the same cells (`# %%`), for VS Code, Spyder and Jupytext; `python
# examples/block_in_my_design.py` runs them all.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import fiberloom

folder = Path(tempfile.mkdtemp(prefix="adder-"))
block = fiberloom.generate(block="fp_add", param={"format": "binary32"}, out=folder)
print(block.record["top"], "from", block.record["parameters"])
files = [Path(entry["path"]) for entry in block.record["files"]]
print(*(path.relative_to(folder) for path in files), sep="\n")

# %% [markdown]
# The folder has the Verilog, a file list, a FuseSoC core, and a page that says what each port means and how
# many cycles it takes. The ports stand at the top of the module, each with its meaning.

# %%
verilog = next(path for path in files if path.suffix == ".sv")
text = verilog.read_text()
print(text[text.index("module") : text.index(");") + 2])

# %% [markdown]
# Our design adds four numbers with three adders. The adder takes two numbers a cycle and answers four cycles
# later, so that the sum of four numbers comes after eight.

# %%
mine = folder / "sum_of_four.sv"
mine.write_text("""\
module sum_of_four (
  input  logic clk,
  input  logic rst,
  input  logic [31:0] x0, x1, x2, x3,
  output logic [31:0] sum
);
  logic [31:0] left, right;
  fp_add add_left  (.clk(clk), .rst(rst), .a(x0), .b(x1), .advance(1'b1), .result(left));
  fp_add add_right (.clk(clk), .rst(rst), .a(x2), .b(x3), .advance(1'b1), .result(right));
  fp_add add_both  (.clk(clk), .rst(rst), .a(left), .b(right), .advance(1'b1), .result(sum));
endmodule
""")

# %% [markdown]
# Yosys is installed with Fiberloom. It checks that every port fits, and counts the cells of the whole on an
# ECP5.

# %%
commands = [
    f'read_verilog -sv "{verilog}" "{mine}"',
    "hierarchy -check -top sum_of_four",
    "synth_ecp5 -noabc9",
    f'tee -q -o "{folder / "cells.txt"}" stat',
]
program = f"from pyosys import libyosys as ys\nfor command in {commands!r}:\n    ys.run_pass(command)\n"
done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
assert done.returncode == 0, done.stdout[-2000:] + done.stderr
counted = (folder / "cells.txt").read_text()
print("\n".join(line for line in counted.splitlines() if line.split()[-1:] in (["LUT4"], ["TRELLIS_FF"], ["CCU2C"])))
assert "LUT4" in counted and counted.count("===") == 2
