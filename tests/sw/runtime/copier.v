// Copies memory: the smallest design with the accelerator's ports, for the tests of the simulation itself.
//
// 0x00 source, 0x04 destination, 0x08 lines, 0x0c control (bit 0 starts), 0x10 status (bit 0 busy, bits 2:1 worst
// response), 0x14 scratch. Anything else is answered with SLVERR.
module copier #(
    parameter DATA = 128,
    parameter BEATS = 8
) (
    input  wire              aclk,
    input  wire              aresetn,
    output reg               irq,
    input  wire [11:0]       s_axil_awaddr,
    input  wire [2:0]        s_axil_awprot,
    input  wire              s_axil_awvalid,
    output wire              s_axil_awready,
    input  wire [31:0]       s_axil_wdata,
    input  wire [3:0]        s_axil_wstrb,
    input  wire              s_axil_wvalid,
    output wire              s_axil_wready,
    output reg  [1:0]        s_axil_bresp,
    output reg               s_axil_bvalid,
    input  wire              s_axil_bready,
    input  wire [11:0]       s_axil_araddr,
    input  wire [2:0]        s_axil_arprot,
    input  wire              s_axil_arvalid,
    output wire              s_axil_arready,
    output reg  [31:0]       s_axil_rdata,
    output reg  [1:0]        s_axil_rresp,
    output reg               s_axil_rvalid,
    input  wire              s_axil_rready,
    output wire [3:0]        m_axi_awid,
    output wire [39:0]       m_axi_awaddr,
    output wire [7:0]        m_axi_awlen,
    output wire [2:0]        m_axi_awsize,
    output wire [1:0]        m_axi_awburst,
    output wire              m_axi_awvalid,
    input  wire              m_axi_awready,
    output wire [DATA-1:0]   m_axi_wdata,
    output wire [DATA/8-1:0] m_axi_wstrb,
    output wire              m_axi_wlast,
    output wire              m_axi_wvalid,
    input  wire              m_axi_wready,
    input  wire [3:0]        m_axi_bid,
    input  wire [1:0]        m_axi_bresp,
    input  wire              m_axi_bvalid,
    output wire              m_axi_bready,
    output wire [3:0]        m_axi_arid,
    output wire [39:0]       m_axi_araddr,
    output wire [7:0]        m_axi_arlen,
    output wire [2:0]        m_axi_arsize,
    output wire [1:0]        m_axi_arburst,
    output wire              m_axi_arvalid,
    input  wire              m_axi_arready,
    input  wire [3:0]        m_axi_rid,
    input  wire [DATA-1:0]   m_axi_rdata,
    input  wire [1:0]        m_axi_rresp,
    input  wire              m_axi_rlast,
    input  wire              m_axi_rvalid,
    output wire              m_axi_rready
);
    localparam LINE = DATA / 8;
    localparam [2:0] IDLE = 0, ASK = 1, READ = 2, TELL = 3, WRITE = 4, WAIT = 5;

    reg [2:0]      state;
    reg [31:0]     source, destination, lines, left, done, scratch;
    reg [1:0]      worst;
    reg [DATA-1:0] held [0:BEATS-1];
    reg [7:0]      at;
    wire [7:0]     burst = left < BEATS ? left[7:0] : BEATS;

    assign m_axi_arvalid = state == ASK;
    assign m_axi_araddr = source + done * LINE;
    assign m_axi_arlen = burst - 1;
    assign m_axi_awvalid = state == TELL;
    assign m_axi_awaddr = destination + done * LINE;
    assign m_axi_awlen = burst - 1;
    assign m_axi_wvalid = state == WRITE;
    assign m_axi_wdata = held[at];
    assign m_axi_wstrb = {LINE{1'b1}};
    assign m_axi_wlast = at == burst - 1;
    assign m_axi_rready = state == READ;
    assign m_axi_bready = state == WAIT;
    assign {m_axi_arid, m_axi_awid} = {4'd1, 4'd2};
    assign {m_axi_arsize, m_axi_awsize} = {2{$clog2(LINE) == 3 ? 3'd3 : $clog2(LINE) == 4 ? 3'd4 : $clog2(LINE) == 6 ? 3'd6 : 3'd7}};
    assign {m_axi_arburst, m_axi_awburst} = {2'd1, 2'd1};

    wire writing = s_axil_awvalid & s_axil_wvalid & ~s_axil_bvalid;
    assign s_axil_awready = writing;
    assign s_axil_wready = writing;
    assign s_axil_arready = s_axil_arvalid & ~s_axil_rvalid;

    always @(posedge aclk) begin
        if (!aresetn) begin
            state <= IDLE;
            irq <= 0;
            s_axil_bvalid <= 0;
            s_axil_rvalid <= 0;
            {source, destination, lines, scratch, worst} <= 0;
        end else begin
            if (s_axil_bready) s_axil_bvalid <= 0;
            if (s_axil_rready) s_axil_rvalid <= 0;
            if (s_axil_arready) begin
                s_axil_rvalid <= 1;
                s_axil_rresp <= 0;
                case (s_axil_araddr)
                    12'h000: s_axil_rdata <= source;
                    12'h004: s_axil_rdata <= destination;
                    12'h008: s_axil_rdata <= lines;
                    12'h010: s_axil_rdata <= {29'd0, worst, state != IDLE};
                    12'h014: s_axil_rdata <= scratch;
                    default: s_axil_rresp <= 2;
                endcase
            end
            case (state)
                IDLE: ;
                ASK: if (m_axi_arready) begin state <= READ; at <= 0; end
                READ: if (m_axi_rvalid) begin
                    held[at] <= m_axi_rdata;
                    if (m_axi_rresp > worst) worst <= m_axi_rresp;
                    at <= m_axi_rlast ? 0 : at + 1;
                    if (m_axi_rlast) state <= TELL;
                end
                TELL: if (m_axi_awready) state <= WRITE;
                WRITE: if (m_axi_wready) begin
                    at <= at + 1;
                    if (m_axi_wlast) state <= WAIT;
                end
                WAIT: if (m_axi_bvalid) begin
                    if (m_axi_bresp > worst) worst <= m_axi_bresp;
                    done <= done + burst;
                    left <= left - burst;
                    state <= left == burst ? IDLE : ASK;
                    irq <= left == burst;
                end
                default: state <= IDLE;
            endcase
            if (writing) begin
                s_axil_bvalid <= 1;
                s_axil_bresp <= 0;
                case (s_axil_awaddr)
                    12'h000: source <= s_axil_wdata;
                    12'h004: destination <= s_axil_wdata;
                    12'h008: lines <= s_axil_wdata;
                    12'h00c: if (s_axil_wdata[0] & state == IDLE) begin
                        state <= ASK;
                        irq <= 0;
                        worst <= 0;
                        left <= lines;
                        done <= 0;
                    end
                    12'h014: scratch <= s_axil_wdata;
                    default: s_axil_bresp <= 2;
                endcase
            end
        end
    end
endmodule
