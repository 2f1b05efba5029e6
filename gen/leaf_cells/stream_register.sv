module stream_register #(
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
  logic valid = 1'b0;

  assign i__ready = o__ready || !valid;
  assign o__payload = item;
  assign o__valid = valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      item <= '0;
      valid <= 1'b0;
    end else if (i__ready) begin
      item <= i__payload;
      valid <= i__valid;
    end
  end

endmodule
