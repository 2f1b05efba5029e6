// Smoke bench of the accelerator: one small multiplication, every word of the result compared.
//
// @ORIGIN@
// @CASE@
//
// Plain Verilog for any simulator with delays; nothing beside the files of this folder. From the folder above:
//
//   $ iverilog -g2012 -s smoke_tb -o smoke.vvp tb/netlist.v tb/smoke_tb.sv && vvp -n smoke.vvp
//   $ verilator --binary --timing -Wno-fatal --top-module smoke_tb -f files.f tb/smoke_tb.sv && obj_dir/Vsmoke_tb
//
// or `make -C tb icarus`, `make -C tb verilator`. Prints PASS, or FAIL with the reason and ends with an exit code that
// is not 0. +memory=FILE and +expected=FILE name other places of the two images, +budget=N another limit in cycles.
//
// netlist.v holds the modules of files.f with multiplexers in place of always_comb: Icarus 11 takes a part of a vector
// there for the whole vector, and may then never come to rest within a time step.

`timescale 1ns / 1ps

module smoke_tb;
  localparam integer DataBits = @DATA_BITS@;
  localparam integer LineBytes = DataBits / 8;
  localparam integer AddressBits = @ADDRESS_BITS@;
  localparam integer IdBits = @ID_BITS@;
  // The memory: its first byte, its lines, cycles from a request to its answer, requests that it takes at a time.
  localparam [63:0] Base = 64'h@BASE@;
  localparam integer Lines = @LINES@;
  localparam integer Latency = @LATENCY@;
  localparam integer Depth = 16;
  // Limits in cycles: one access of a register, the run.
  localparam integer AccessBudget = 1000;
  localparam integer RunBudget = @BUDGET@;
  // C: rows, elements, and where its row pointers and its elements (coordinate, value) lie.
  localparam integer Rows = @ROWS@;
  localparam integer Nonzeros = @NNZ@;
  localparam integer ExpectedWords = Rows + 1 + 2 * Nonzeros;
  localparam [63:0] Pointers = 64'h@C_POINTERS@;
  localparam [63:0] Elements = 64'h@C_ELEMENTS@;
  localparam [63:0] PointersEnd = 64'h@C_POINTERS_END@;
  localparam [63:0] ElementsEnd = 64'h@C_ELEMENTS_END@;
  // Fills the memory before the run: what the accelerator has not written still holds it afterwards.
  localparam [7:0] Poison = 8'h@POISON@;

  reg aclk = 0;
  reg aresetn = 0;
  reg [63:0] cycle = 0;
  always #5 aclk = ~aclk;
  always @(posedge aclk) cycle <= cycle + 1;

  wire irq;
  reg s_axil_awvalid = 0, s_axil_wvalid = 0, s_axil_bready = 0, s_axil_arvalid = 0, s_axil_rready = 0;
  reg [11:0] s_axil_awaddr = 0, s_axil_araddr = 0;
  reg [31:0] s_axil_wdata = 0;
  wire s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
  wire [1:0] s_axil_bresp, s_axil_rresp;
  wire [31:0] s_axil_rdata;

  wire m_axi_awvalid, m_axi_wvalid, m_axi_wlast, m_axi_bready, m_axi_arvalid, m_axi_rready;
  wire [IdBits-1:0] m_axi_awid, m_axi_arid;
  wire [AddressBits-1:0] m_axi_awaddr, m_axi_araddr;
  wire [7:0] m_axi_awlen, m_axi_arlen;
  wire [2:0] m_axi_awsize, m_axi_arsize, m_axi_awprot, m_axi_arprot;
  wire [1:0] m_axi_awburst, m_axi_arburst;
  wire [3:0] m_axi_awcache, m_axi_arcache;
  wire [DataBits-1:0] m_axi_wdata;
  wire [LineBytes-1:0] m_axi_wstrb;
  wire m_axi_awready, m_axi_wready, m_axi_arready;
  reg m_axi_bvalid = 0, m_axi_rvalid = 0, m_axi_rlast = 0;
  reg [IdBits-1:0] m_axi_bid = 0, m_axi_rid = 0;
  reg [DataBits-1:0] m_axi_rdata = 0;

  @TOP@ dut (
      .aclk(aclk), .aresetn(aresetn), .irq(irq),
      .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready), .s_axil_awaddr(s_axil_awaddr),
      .s_axil_awprot(3'd0), .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready), .s_axil_wdata(s_axil_wdata),
      .s_axil_wstrb(4'hf), .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready), .s_axil_bresp(s_axil_bresp),
      .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready), .s_axil_araddr(s_axil_araddr),
      .s_axil_arprot(3'd0), .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready), .s_axil_rdata(s_axil_rdata),
      .s_axil_rresp(s_axil_rresp),
      .m_axi_awvalid(m_axi_awvalid), .m_axi_awready(m_axi_awready), .m_axi_awid(m_axi_awid),
      .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awsize(m_axi_awsize),
      .m_axi_awburst(m_axi_awburst), .m_axi_awcache(m_axi_awcache), .m_axi_awprot(m_axi_awprot),
      .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(m_axi_wready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb),
      .m_axi_wlast(m_axi_wlast), .m_axi_bvalid(m_axi_bvalid), .m_axi_bready(m_axi_bready), .m_axi_bid(m_axi_bid),
      .m_axi_bresp(2'd0),
      .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), .m_axi_arid(m_axi_arid),
      .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize),
      .m_axi_arburst(m_axi_arburst), .m_axi_arcache(m_axi_arcache), .m_axi_arprot(m_axi_arprot),
      .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready), .m_axi_rid(m_axi_rid), .m_axi_rdata(m_axi_rdata),
      .m_axi_rresp(2'd0), .m_axi_rlast(m_axi_rlast)
  );

  // ---------------------------------------------------------------------------------------------------------- memory

  reg [DataBits-1:0] memory[0:Lines-1];
  reg [31:0] expected[0:ExpectedWords-1];

  function readable(input [63:0] first, input [63:0] last);
    readable = @READABLE@;
  endfunction

  function writable(input [63:0] first, input [63:0] last);
    writable = @WRITABLE@;
  endfunction

  task check_burst(input writes, input [63:0] address, input [7:0] length, input [2:0] size, input [1:0] burst);
    reg [63:0] first, last;
    begin
      first = address / LineBytes * LineBytes;
      last = first + (length + 1) * LineBytes - 1;
      if (1 << size != LineBytes || burst != 1 || first[63:12] != last[63:12] ||
          !(writes ? writable(first, last) : readable(first, last))) begin
        $display("FAIL: cycle %0d: no burst that may %s this memory: address 0x%0h, %0d beats, size %0d, kind %0d", cycle,
                 writes ? "write" : "read", address, length + 1, size, burst);
        $fatal(1);
      end
    end
  endtask

  // Xorshift: pauses of the memory, the same in every simulator.
  reg [31:0] noise = 32'h2545f491;
  always @(posedge aclk) begin : shift
    reg [31:0] next;
    next = noise ^ (noise << 13);
    next = next ^ (next >> 17);
    noise <= next ^ (next << 5);
  end
  wire read_pause = noise[2:0] == 0, write_pause = noise[5:3] == 0;

  // Reads are answered in order.
  reg [63:0] read_address[0:Depth-1], read_due[0:Depth-1];
  reg [7:0] read_length[0:Depth-1], read_beat = 0;
  reg [IdBits-1:0] read_id[0:Depth-1];
  integer read_head = 0, read_tail = 0;
  wire [63:0] read_line = (read_address[read_head%Depth] - Base) / LineBytes + read_beat;
  assign m_axi_arready = read_tail - read_head < Depth && !read_pause;

  always @(posedge aclk) begin
    if (!aresetn) begin
      m_axi_rvalid <= 0;
    end else begin
      if (m_axi_arvalid && m_axi_arready) begin
        check_burst(0, m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst);
        read_address[read_tail%Depth] <= m_axi_araddr;
        read_length[read_tail%Depth] <= m_axi_arlen;
        read_id[read_tail%Depth] <= m_axi_arid;
        read_due[read_tail%Depth] <= cycle + Latency;
        read_tail <= read_tail + 1;
      end
      if (!m_axi_rvalid || m_axi_rready) begin
        m_axi_rvalid <= 0;
        if (read_head != read_tail && cycle >= read_due[read_head%Depth] && !read_pause) begin
          m_axi_rvalid <= 1;
          m_axi_rid <= read_id[read_head%Depth];
          m_axi_rdata <= memory[read_line];
          m_axi_rlast <= read_beat == read_length[read_head%Depth];
          read_beat <= read_beat == read_length[read_head%Depth] ? 0 : read_beat + 1;
          if (read_beat == read_length[read_head%Depth]) read_head <= read_head + 1;
        end
      end
    end
  end

  // Writes: data is taken when its address is here, and acknowledged in order.
  reg [63:0] write_address[0:Depth-1], write_due[0:Depth-1];
  reg [7:0] write_length[0:Depth-1], write_beat = 0;
  reg [IdBits-1:0] write_id[0:Depth-1];
  integer write_head = 0, write_tail = 0, answer_head = 0;
  wire [63:0] write_line = (write_address[write_head%Depth] - Base) / LineBytes + write_beat;
  assign m_axi_awready = write_tail - answer_head < Depth && !write_pause;
  assign m_axi_wready = write_head != write_tail && !read_pause;

  always @(posedge aclk) begin : writes
    integer n;
    if (!aresetn) begin
      m_axi_bvalid <= 0;
    end else begin
      if (m_axi_awvalid && m_axi_awready) begin
        check_burst(1, m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst);
        write_address[write_tail%Depth] <= m_axi_awaddr;
        write_length[write_tail%Depth] <= m_axi_awlen;
        write_id[write_tail%Depth] <= m_axi_awid;
        write_tail <= write_tail + 1;
      end
      if (m_axi_wvalid && m_axi_wready) begin
        for (n = 0; n < LineBytes; n = n + 1)
          if (m_axi_wstrb[n]) memory[write_line][8*n+:8] <= m_axi_wdata[8*n+:8];
        if (m_axi_wlast != (write_beat == write_length[write_head%Depth])) begin
          $display("FAIL: cycle %0d: WLAST is %b in beat %0d of %0d", cycle, m_axi_wlast, write_beat,
                   write_length[write_head%Depth] + 1);
          $fatal(1);
        end
        write_beat <= m_axi_wlast ? 0 : write_beat + 1;
        if (m_axi_wlast) begin
          write_due[write_head%Depth] <= cycle + Latency;
          write_head <= write_head + 1;
        end
      end
      if (!m_axi_bvalid || m_axi_bready) begin
        m_axi_bvalid <= 0;
        if (answer_head != write_head && cycle >= write_due[answer_head%Depth] && !write_pause) begin
          m_axi_bvalid <= 1;
          m_axi_bid <= write_id[answer_head%Depth];
          answer_head <= answer_head + 1;
        end
      end
    end
  end

  // ------------------------------------------------------------------------------------------------------- registers

  // Tasks ask between the edges of the clock, this answers: no signal is sampled where it may be changing.
  reg asked = 0, taken = 0, answered = 0, ask_write = 0;
  reg [11:0] ask_offset = 0;
  reg [31:0] ask_data = 0, answer = 0;
  reg [1:0] response = 0;

  always @(posedge aclk) begin
    if (s_axil_awvalid && s_axil_awready) s_axil_awvalid <= 0;
    if (s_axil_wvalid && s_axil_wready) s_axil_wvalid <= 0;
    if (s_axil_arvalid && s_axil_arready) s_axil_arvalid <= 0;
    if (s_axil_bvalid && s_axil_bready) begin
      s_axil_bready <= 0;
      response <= s_axil_bresp;
      answered <= 1;
    end
    if (s_axil_rvalid && s_axil_rready) begin
      s_axil_rready <= 0;
      response <= s_axil_rresp;
      answer <= s_axil_rdata;
      answered <= 1;
    end
    if (asked != taken) begin
      taken <= asked;
      answered <= 0;
      s_axil_awvalid <= ask_write;
      s_axil_wvalid <= ask_write;
      s_axil_bready <= ask_write;
      s_axil_arvalid <= !ask_write;
      s_axil_rready <= !ask_write;
      s_axil_awaddr <= ask_offset;
      s_axil_araddr <= ask_offset;
      s_axil_wdata <= ask_data;
    end
  end

  integer waited = 0;

  task access(input writes, input [11:0] offset, input [31:0] data);
    begin
      @(negedge aclk);
      ask_write = writes;
      ask_offset = offset;
      ask_data = data;
      asked = !asked;
      @(negedge aclk);
      waited = 0;
      while (!answered) begin
        @(negedge aclk);
        waited = waited + 1;
        if (waited > AccessBudget) begin
          $display("FAIL: waited %0d cycles for %0s of the %0s of register 0x%03h", AccessBudget,
                   s_axil_awvalid || s_axil_arvalid ? "the address" : s_axil_wvalid ? "the data" : "the answer",
                   writes ? "write" : "read", offset);
          $fatal(1);
        end
      end
      if (response != 0) begin
        $display("FAIL: the %0s of register 0x%03h was answered with response %0d", writes ? "write" : "read", offset,
                 response);
        $fatal(1);
      end
    end
  endtask

  task write_register(input [11:0] offset, input [31:0] value);
    access(1, offset, value);
  endtask

  task read_register(input [11:0] offset, output [31:0] value);
    begin
      access(0, offset, 0);
      value = answer;
    end
  endtask

  integer mismatches = 0;

  task note_mismatch(input [31:0] found, input [31:0] wanted);
    begin
      mismatches = mismatches + 1;
      $display("  found 0x%08h, expected 0x%08h", found, wanted);
    end
  endtask

  task check_register(input [11:0] offset, input [31:0] wanted);
    reg [31:0] found;
    begin
      read_register(offset, found);
      if (found !== wanted) begin
        $display("register 0x%03h differs:", offset);
        note_mismatch(found, wanted);
      end
    end
  endtask

  // What a run that does not end waits for: the phase, and the units that are not idle.
  task show_waiting;
    reg [31:0] waiting, code, detail;
    begin
      read_register(12'h@WAITING@, waiting);
      read_register(12'h@ERROR_CODE@, code);
      read_register(12'h@ERROR_DETAIL@, detail);
      case (waiting[@PHASE_TOP@:0])
@PHASES@
      endcase
@UNITS@
      $display("  bus: %0d reads and %0d writes not finished; error code %0d, detail 0x%0h", read_tail - read_head,
               write_tail - answer_head, code, detail);
    end
  endtask

  // ------------------------------------------------------------------------------------------------------------- run

  function [31:0] word_at(input [63:0] address);
    reg [DataBits-1:0] line;
    begin
      line = memory[(address-Base)/LineBytes];
      word_at = line[(address%LineBytes)*8+:32];
    end
  endfunction

  task configure;
    begin
@CONFIGURATION@
    end
  endtask

  task check_identity;
    begin
@IDENTITY@
    end
  endtask

  task check_result;
    integer n;
    begin
@RESULT@
      for (n = 0; n <= Rows; n = n + 1)
        if (word_at(Pointers + 4 * n) !== expected[n]) begin
          $display("row pointer %0d of C differs:", n);
          note_mismatch(word_at(Pointers + 4 * n), expected[n]);
        end
      for (n = 0; n < 2 * Nonzeros; n = n + 1)
        if (word_at(Elements + 4 * n) !== expected[Rows+1+n]) begin
          $display("element %0d of C, its %0s, differs:", n / 2, n % 2 ? "value" : "column");
          note_mismatch(word_at(Elements + 4 * n), expected[Rows+1+n]);
        end
      for (n = Rows + 1; Pointers + 4 * n < PointersEnd; n = n + 1)
        if (word_at(Pointers + 4 * n) !== {4{Poison}}) begin
          $display("written behind the row pointers of C, at word %0d:", n);
          note_mismatch(word_at(Pointers + 4 * n), {4{Poison}});
        end
      for (n = 2 * Nonzeros; Elements + 4 * n < ElementsEnd; n = n + 1)
        if (word_at(Elements + 4 * n) !== {4{Poison}}) begin
          $display("written behind the elements of C, at word %0d:", n);
          note_mismatch(word_at(Elements + 4 * n), {4{Poison}});
        end
    end
  endtask

  reg [8*256-1:0] memory_file, expected_file;
  integer budget, place;
  reg [63:0] started;
  reg [31:0] status, code, detail;

  initial begin
    if (!$value$plusargs("memory=%s", memory_file)) memory_file = "tb/smoke_memory.hex";
    if (!$value$plusargs("expected=%s", expected_file)) expected_file = "tb/smoke_expected.hex";
    if (!$value$plusargs("budget=%d", budget)) budget = RunBudget;
    for (place = 0; place < Lines; place = place + 1) memory[place] = {LineBytes{Poison}};
    $readmemh(memory_file, memory);
    $readmemh(expected_file, expected);
    if (^expected[ExpectedWords-1] === 1'bx) begin
      $display("FAIL: %0s was not read", expected_file);
      $fatal(1);
    end
    repeat (8) @(negedge aclk);
    aresetn = 1;
    repeat (2) @(negedge aclk);

    check_identity;
    if (mismatches != 0) begin
      $display("FAIL: this is not the accelerator of the bench");
      $fatal(1);
    end
    configure;
    write_register(12'h@CONTROL@, 32'h@START@);
    started = cycle;
    while (!irq) begin
      @(negedge aclk);
      if (cycle - started > budget) begin
        $display("FAIL: waited %0d cycles for the interrupt that ends the run", budget);
        show_waiting;
        $fatal(1);
      end
    end
    started = cycle - started;
    read_register(12'h@STATUS@, status);
    if (!status[@DONE_BIT@] || status[@BUSY_BIT@] || status[@ERROR_BIT@]) begin
      read_register(12'h@ERROR_CODE@, code);
      read_register(12'h@ERROR_DETAIL@, detail);
      $display("FAIL: the run ended with status 0x%0h, error code %0d, detail 0x%0h", status, code, detail);
      $fatal(1);
    end
    check_result;
    if (read_head != read_tail || answer_head != write_tail) begin
      $display("FAIL: bursts are in flight after the end of the run");
      $fatal(1);
    end
    if (mismatches != 0) begin
      $display("FAIL: %0d words differ", mismatches);
      $fatal(1);
    end
    $display("PASS: @PRODUCT@ in %0d cycles, %0d words compared", started, ExpectedWords);
    $finish;
  end
endmodule
