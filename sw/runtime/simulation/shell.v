// What the harness drives instead of the design itself: every input is registered here, so that a simulated cycle needs
// one evaluation. The harness decides the inputs of a cycle during the cycle before.
//
// Identifiers and addresses are as wide as any design's; narrower ports of the design are extended and cut.
module shell #(
    parameter DATA = 128
) (
    input             aclk,
    input             aresetn,
    output            irq,

    input      [31:0] probe_index,
    output     [63:0] probe_value,

    input      [11:0] s_axil_awaddr,
    input             s_axil_awvalid,
    output            s_axil_awready,
    input      [31:0] s_axil_wdata,
    input             s_axil_wvalid,
    output            s_axil_wready,
    output      [1:0] s_axil_bresp,
    output            s_axil_bvalid,
    input             s_axil_bready,
    input      [11:0] s_axil_araddr,
    input             s_axil_arvalid,
    output            s_axil_arready,
    output     [31:0] s_axil_rdata,
    output      [1:0] s_axil_rresp,
    output            s_axil_rvalid,
    input             s_axil_rready,

    output      [7:0] m_axi_awid,
    output     [63:0] m_axi_awaddr,
    output      [7:0] m_axi_awlen,
    output      [2:0] m_axi_awsize,
    output      [1:0] m_axi_awburst,
    output            m_axi_awvalid,
    input             m_axi_awready,
    output [DATA-1:0] m_axi_wdata,
    output [DATA/8-1:0] m_axi_wstrb,
    output            m_axi_wlast,
    output            m_axi_wvalid,
    input             m_axi_wready,
    input       [7:0] m_axi_bid,
    input       [1:0] m_axi_bresp,
    input             m_axi_bvalid,
    output            m_axi_bready,
    output      [7:0] m_axi_arid,
    output     [63:0] m_axi_araddr,
    output      [7:0] m_axi_arlen,
    output      [2:0] m_axi_arsize,
    output      [1:0] m_axi_arburst,
    output            m_axi_arvalid,
    input             m_axi_arready,
    input       [7:0] m_axi_rid,
    input  [DATA-1:0] m_axi_rdata,
    input       [1:0] m_axi_rresp,
    input             m_axi_rlast,
    input             m_axi_rvalid,
    output            m_axi_rready
);
    reg            resetn, awvalid, wvalid, bready, arvalid, rready;
    reg     [11:0] awaddr, araddr;
    reg     [31:0] wdata;
    reg            mem_awready, mem_wready, mem_bvalid, mem_arready, mem_rvalid, mem_rlast;
    reg      [7:0] mem_bid, mem_rid;
    reg      [1:0] mem_bresp, mem_rresp;
    reg [DATA-1:0] mem_rdata;

    always @(posedge aclk) begin
        resetn <= aresetn;
        {awvalid, awaddr} <= {s_axil_awvalid, s_axil_awaddr};
        {wvalid, wdata} <= {s_axil_wvalid, s_axil_wdata};
        {arvalid, araddr} <= {s_axil_arvalid, s_axil_araddr};
        {bready, rready} <= {s_axil_bready, s_axil_rready};
        {mem_awready, mem_wready, mem_arready} <= {m_axi_awready, m_axi_wready, m_axi_arready};
        {mem_bvalid, mem_bid, mem_bresp} <= {m_axi_bvalid, m_axi_bid, m_axi_bresp};
        {mem_rvalid, mem_rlast, mem_rid, mem_rresp} <= {m_axi_rvalid, m_axi_rlast, m_axi_rid, m_axi_rresp};
        mem_rdata <= m_axi_rdata;
    end

    `DESIGN under_test (
        .aclk(aclk),
        .aresetn(resetn),
        .irq(irq),
        .s_axil_awaddr(awaddr),
        .s_axil_awprot(3'd0),
        .s_axil_awvalid(awvalid),
        .s_axil_awready(s_axil_awready),
        .s_axil_wdata(wdata),
        .s_axil_wstrb(4'hf),
        .s_axil_wvalid(wvalid),
        .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp),
        .s_axil_bvalid(s_axil_bvalid),
        .s_axil_bready(bready),
        .s_axil_araddr(araddr),
        .s_axil_arprot(3'd0),
        .s_axil_arvalid(arvalid),
        .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata),
        .s_axil_rresp(s_axil_rresp),
        .s_axil_rvalid(s_axil_rvalid),
        .s_axil_rready(rready),
        .m_axi_awid(m_axi_awid),
        .m_axi_awaddr(m_axi_awaddr),
        .m_axi_awlen(m_axi_awlen),
        .m_axi_awsize(m_axi_awsize),
        .m_axi_awburst(m_axi_awburst),
        .m_axi_awvalid(m_axi_awvalid),
        .m_axi_awready(mem_awready),
        .m_axi_wdata(m_axi_wdata),
        .m_axi_wstrb(m_axi_wstrb),
        .m_axi_wlast(m_axi_wlast),
        .m_axi_wvalid(m_axi_wvalid),
        .m_axi_wready(mem_wready),
        .m_axi_bid(mem_bid),
        .m_axi_bresp(mem_bresp),
        .m_axi_bvalid(mem_bvalid),
        .m_axi_bready(m_axi_bready),
        .m_axi_arid(m_axi_arid),
        .m_axi_araddr(m_axi_araddr),
        .m_axi_arlen(m_axi_arlen),
        .m_axi_arsize(m_axi_arsize),
        .m_axi_arburst(m_axi_arburst),
        .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(mem_arready),
        .m_axi_rid(mem_rid),
        .m_axi_rdata(mem_rdata),
        .m_axi_rresp(mem_rresp),
        .m_axi_rlast(mem_rlast),
        .m_axi_rvalid(mem_rvalid),
        .m_axi_rready(m_axi_rready)
    );

    // Monitors, see probes.py.
    `include "probes.vh"
endmodule
