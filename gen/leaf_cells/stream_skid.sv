module stream_skid #(
  parameter int WIDTH = 8  // bits of an item
) (
  input  logic clk,
  input  logic rst,
  input  logic [WIDTH-1:0] i__payload,
  input  logic i__valid,
  output logic i__ready,
  output logic [WIDTH-1:0] o__payload,
  output logic o__valid,
  input  logic o__ready
);
  logic [WIDTH-1:0] item = '0;
  logic [WIDTH-1:0] spare = '0;  // waits behind `item` while `full`
  logic valid = 1'b0;
  logic full = 1'b0;
  logic ready = 1'b1;  // the contrary of `full`, which each bit reads
  logic moves;

  assign moves = o__ready || !valid;
  assign i__ready = ready;
  assign o__payload = item;
  assign o__valid = valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      item <= '0;
      valid <= 1'b0;
      full <= 1'b0;
      ready <= 1'b1;
    end else if (moves) begin
      item <= full ? spare : i__payload;
      valid <= full || i__valid;
      full <= 1'b0;
      ready <= 1'b1;
    end else if (i__valid) begin
      full <= 1'b1;
      ready <= 1'b0;
    end
  end

  // Whether or not it is needed, so that its register waits for neither side.
  always_ff @(posedge clk) begin
    if (!full) begin
      spare <= i__payload;
    end
  end

endmodule
