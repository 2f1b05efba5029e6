// Smoke bench of the block @NAME@ alone: @CYCLES@ cycles, @VALUES@ values of outputs compared.
//
// @ORIGIN@
//
// Neighbours that offer and take by chance drive every port; smoke_stimulus.hex has what they do, and smoke_expected.hex what
// the block answered in the simulation of its source, Amaranth's: @EPISODES@ times from a reset. Of a stream nothing is
// compared but valid and ready where valid is low. @MOVING@ of @OUTPUT_BITS@ bits of the outputs are seen as 0 and as 1.
//
// Plain Verilog for any simulator with delays; nothing beside the files of this folder. From the folder above:
//
//   $ iverilog -g2012 -s smoke_tb -o smoke.vvp tb/netlist.v tb/smoke_tb.sv && vvp -n smoke.vvp
//   $ verilator --binary --timing -Wno-fatal --top-module smoke_tb -f files.f tb/smoke_tb.sv && obj_dir/Vsmoke_tb
//
// or `make -C tb icarus`, `make -C tb verilator`. Prints PASS, or FAIL with the cycle and the ports that differ and ends with an
// exit code that is not 0. +stimulus=FILE and +expected=FILE name other places of the two images.

`timescale 1ns / 1ps

module smoke_tb;
  localparam integer Cycles = @CYCLES@;
  localparam integer InputBits = @INPUT_BITS@;
  localparam integer OutputBits = @OUTPUT_BITS@;
  localparam integer Outputs = @OUTPUTS@;
  // Values that are compared in all.
  localparam integer Values = @COUNT@;

  reg [InputBits:0] stimulus[0:Cycles-1];
  reg [Outputs+OutputBits-1:0] expected[0:Cycles-1];
  string stimulus_file = "tb/smoke_stimulus.hex";
  string expected_file = "tb/smoke_expected.hex";

  reg clk = 0;
  reg rst = 1;
  reg [InputBits-1:0] driven = 0;
  wire [OutputBits-1:0] answered;
  reg [OutputBits-1:0] wanted;
  reg [Outputs-1:0] checked;
  integer cycle = 0;
  integer wrong = 0;
  integer values = 0;

  @TOP@ dut (
@PORTS@
  );

  task compare(input string port, input [OutputBits-1:0] found, input [OutputBits-1:0] right);
    begin
      values = values + 1;
      if (found !== right) begin
        if (wrong == 0) $display("FAIL: cycle %0d differs from the source", cycle);
        $display("  %0s is 0x%0h, should be 0x%0h", port, found, right);
        wrong = wrong + 1;
      end
    end
  endtask

  initial begin
    if ($value$plusargs("stimulus=%s", stimulus_file)) begin
    end
    if ($value$plusargs("expected=%s", expected_file)) begin
    end
    $readmemh(stimulus_file, stimulus);
    $readmemh(expected_file, expected);
    // Inputs change after the rising edge, outputs are looked at before the next one.
    for (cycle = 0; cycle < Cycles; cycle = cycle + 1) begin
      {rst, driven} = stimulus[cycle];
      {checked, wanted} = expected[cycle];
      #5 clk = 0;
      #4;
@CHECKS@
      if (wrong != 0) $fatal(1);
      #1 clk = 1;
      #1;
    end
    // A simulator without undefined values takes a file that is not there for zeros.
    if (values != Values) begin
      $display("FAIL: %0s or %0s is not the bench's: %0d values compared, not %0d", stimulus_file, expected_file, values,
               Values);
      $fatal(1);
    end
    $display("PASS: @NAME@, %0d cycles, %0d values of outputs equal to those of the source", Cycles, values);
    $finish;
  end
endmodule
