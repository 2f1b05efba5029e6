"""Design file to hardware: checked designs, Verilog, headers, constraints, cores."""

__version__ = "0.1.0"
