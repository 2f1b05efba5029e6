module stream_queue #(
  parameter int WIDTH = 8,  // bits of an item
  parameter int DEPTH = 4,  // items, at least 1
  parameter bit BLOCK_MEMORY = 0  // items in block memory: DEPTH at least 3, one cycle more from i to o
) (
  input  logic clk,
  input  logic rst,
  input  logic [WIDTH-1:0] i__payload,
  input  logic i__valid,
  output logic i__ready,
  output logic [WIDTH-1:0] o__payload,
  output logic o__valid,
  input  logic o__ready,
  output logic [$clog2(DEPTH + 1)-1:0] level  // items in the queue
);
  localparam int LEVEL = $clog2(DEPTH + 1);
  localparam int INDEX = DEPTH > 1 ? $clog2(DEPTH) : 1;
  localparam logic [INDEX-1:0] LAST = INDEX'(DEPTH - 1);

  logic [LEVEL-1:0] count = '0;
  logic enter;
  logic leave;

  // Of a depth that is a power of two the highest bit says that nothing more fits.
  localparam bit POWER_OF_TWO = (DEPTH & (DEPTH - 1)) == 0;

  assign level = count;
  assign i__ready = POWER_OF_TWO ? !count[LEVEL-1] : count != LEVEL'(DEPTH);
  assign enter = i__valid && i__ready;
  assign leave = o__valid && o__ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      count <= '0;
    end else if (enter && !leave) begin
      count <= count + LEVEL'(1);
    end else if (leave && !enter) begin
      count <= count - LEVEL'(1);
    end
  end

  generate
    if (DEPTH == 1) begin : single
      logic [WIDTH-1:0] item = '0;

      assign o__valid = count != '0;
      assign o__payload = item;

      always_ff @(posedge clk) begin
        if (rst) begin
          item <= '0;
        end else if (enter) begin
          item <= i__payload;
        end
      end
    end else begin : several
      logic [INDEX-1:0] write_index = '0;
      logic [INDEX-1:0] read_index = '0;
      logic fetch;  // the oldest item leaves its place

      always_ff @(posedge clk) begin
        if (rst) begin
          write_index <= '0;
          read_index <= '0;
        end else begin
          if (enter) begin
            write_index <= write_index == LAST ? '0 : write_index + INDEX'(1);
          end
          if (fetch) begin
            read_index <= read_index == LAST ? '0 : read_index + INDEX'(1);
          end
        end
      end

      if (BLOCK_MEMORY) begin : block
        // The memory's own output register is the head of the queue: all items but that one lie in the memory.
        // No word is read in the cycle in which it is written.
        (* no_rw_check, ram_style = "block" *) logic [WIDTH-1:0] storage [0:DEPTH-1];
        logic [WIDTH-1:0] head;
        logic valid = 1'b0;

        assign fetch = valid ? o__ready && count > LEVEL'(1) : count != '0;
        assign o__valid = valid;
        assign o__payload = head;

        always_ff @(posedge clk) begin
          if (rst) begin
            valid <= 1'b0;
          end else if (fetch) begin
            valid <= 1'b1;
          end else if (o__ready) begin
            valid <= 1'b0;
          end
        end

        always_ff @(posedge clk) begin
          if (enter) storage[write_index] <= i__payload;
        end

        always_ff @(posedge clk) begin
          if (fetch) head <= storage[read_index];
        end
      end else if (DEPTH == 2) begin : pair
        logic [WIDTH-1:0] slot0 = '0;
        logic [WIDTH-1:0] slot1 = '0;

        assign fetch = leave;
        assign o__valid = count != '0;
        assign o__payload = read_index == LAST ? slot1 : slot0;

        // The free one follows the input whether or not an item comes, so that it does not wait to be told.
        always_ff @(posedge clk) begin
          if (i__ready && write_index != LAST) slot0 <= i__payload;
          if (i__ready && write_index == LAST) slot1 <= i__payload;
        end
      end else begin : ring
        logic [WIDTH-1:0] storage [0:DEPTH-1];

        assign fetch = leave;
        assign o__valid = count != '0;
        assign o__payload = storage[read_index];

        always_ff @(posedge clk) begin
          if (enter) storage[write_index] <= i__payload;
        end
      end
    end
  endgenerate

endmodule
