// The compiled simulation as a library: clock, reset, AXI4-Lite accesses and runs against the memory of axi_memory.hpp.
//
// The design sits in the module of shell.v, compiled as the class Vtop: inputs reach it one cycle after they are set here.
// One handle is one instance; handles are independent of each other, each belongs to one thread at a time.
#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif
#include "axi_memory.hpp"
#include "part_scope.hpp"

#include <memory>

double sc_time_stamp() { return 0; }

namespace {
constexpr int LITE_LIMIT = 100000;  // cycles that a register access may take
constexpr int UNANSWERED = -1;
constexpr uint32_t CONTROL = 0x080, CONTROL_START = 1;  // of rtl/regs/map.py

// One register access at a time; each flag is a channel whose handshake is still to come.
struct Lite {
    bool aw = false, w = false, b = false, ar = false, r = false;
    bool starts = false;  // a run, in this cycle
    uint32_t address = 0, data = 0;
    int response = 0;

    bool busy() const { return aw || w || b || ar || r; }

    void drive(Vtop &top) const {
        top.s_axil_awvalid = aw;
        top.s_axil_wvalid = w;
        top.s_axil_bready = b;
        top.s_axil_arvalid = ar;
        top.s_axil_rready = r;
        top.s_axil_awaddr = top.s_axil_araddr = address;
        top.s_axil_wdata = data;
    }

    void sample(Vtop &top) {
        starts = false;
        if (!busy()) return;
        if (top.s_axil_awvalid && top.s_axil_awready) aw = false;
        if (top.s_axil_wvalid && top.s_axil_wready) {
            w = false;
            starts = address == CONTROL && data & CONTROL_START;
        }
        if (top.s_axil_arvalid && top.s_axil_arready) ar = false;
        if (top.s_axil_bready && top.s_axil_bvalid) {
            b = false;
            response = top.s_axil_bresp;
        }
        if (top.s_axil_rready && top.s_axil_rvalid) {
            r = false;
            response = top.s_axil_rresp;
            data = top.s_axil_rdata;
        }
    }
};

struct Simulation {
    Lite lite;
    VerilatedContext context;
    std::unique_ptr<Vtop> top;
    std::unique_ptr<AxiMemory<Vtop>> memory;
    uint64_t started = 0, ended = 0;  // cycles of the last run's start and of its interrupt; 0 before it
#if VM_TRACE
    std::unique_ptr<VerilatedVcdC> trace;
    uint64_t trace_begin = 0, trace_end = 0;
#endif

    Simulation(const Timing &timing, int threads) {
#if VM_TRACE
        context.traceEverOn(true);
#endif
        top = std::make_unique<Vtop>(&context);
        memory = std::make_unique<AxiMemory<Vtop>>(*top, timing);
        PartScope scope{threads, nullptr};
        part_scope = &scope;
        top->eval();
        part_scope = nullptr;
    }
    ~Simulation() {
#if VM_TRACE
        if (trace) trace->close();
#endif
        top->final();
    }

    void dump(int half) {
#if VM_TRACE
        uint64_t cycle = memory->statistics.cycles;
        if (trace && cycle >= trace_begin && cycle < trace_end) trace->dump(2 * cycle + half);
#else
        (void)half;
#endif
    }

    void edge() {
        top->aclk = 0;
        top->eval();
        dump(0);
        top->aclk = 1;
        top->eval();
        dump(1);
        memory->statistics.cycles++;
    }

    // The design shows what it does with the inputs that the last edge took over; then come those of the next cycle.
    void tick() {
        memory->sample();
        lite.sample(*top);
        if (lite.starts) {
            started = memory->statistics.cycles;
            ended = 0;
            memory->begin_accounts();
        }
        memory->drive();
        lite.drive(*top);
        bool before = top->irq;
        edge();
        if (top->irq && !before) ended = memory->statistics.cycles;
    }

    void reset(int cycles) {
        top->aresetn = 0;
        lite = Lite{};
        lite.drive(*top);
        top->m_axi_arready = top->m_axi_awready = top->m_axi_wready = top->m_axi_rvalid = top->m_axi_bvalid = 0;
        memory->reset();
        for (int n = 0; n < cycles; n++) edge();
        top->aresetn = 1;
        edge();  // into the shell's register
    }

    int access() {
        for (int n = 0; lite.busy(); n++) {
            if (n == LITE_LIMIT) return UNANSWERED;
            tick();
        }
        return lite.response;
    }

    int write(uint32_t offset, uint32_t value) {
        lite = Lite{};
        lite.aw = lite.w = lite.b = true;
        lite.address = offset;
        lite.data = value;
        return access();
    }

    int read(uint32_t offset, uint32_t *value) {
        lite = Lite{};
        lite.ar = lite.r = true;
        lite.address = offset;
        int response = access();
        *value = lite.data;
        return response;
    }
};
}  // namespace

#define API extern "C" __attribute__((visibility("default")))

API Simulation *fl_open(const Timing *timing, int threads) { return new Simulation(*timing, threads); }
API void fl_close(Simulation *s) { delete s; }
API void fl_region(Simulation *s, uint64_t base, uint8_t *data, uint64_t size, int writable) {
    s->memory->add(base, data, size, writable != 0);
}
API void fl_inject(Simulation *s, uint64_t address, int write, int response) {
    s->memory->inject(address, write != 0, uint8_t(response));
}
API void fl_inject_beat(Simulation *s, uint64_t beat, int write, int response) {
    s->memory->beat_faults.push_back({beat, write != 0, uint8_t(response), false, 0});
}
// Address of the burst that the n-th injected beat belonged to; 0 (and nothing written) while it has not come.
API int fl_struck(Simulation *s, int n, uint64_t *address) {
    if (n >= int(s->memory->beat_faults.size()) || !s->memory->beat_faults[n].hit) return 0;
    *address = s->memory->beat_faults[n].struck;
    return 1;
}
API void fl_freeze(Simulation *s, uint32_t channels, uint64_t begin, uint64_t end) {
    s->memory->freeze(channels, begin, end);
}
API void fl_pardon(Simulation *s) { s->memory->pardon(); }
API void fl_reset(Simulation *s, int cycles) { s->reset(cycles); }
API int fl_write(Simulation *s, uint32_t offset, uint32_t value) { return s->write(offset, value); }
API int fl_read(Simulation *s, uint32_t offset, uint32_t *value) { return s->read(offset, value); }

// Register writes in order; returns how many were answered with OKAY before the first that was not.
API int fl_write_many(Simulation *s, int count, const uint32_t *offsets, const uint32_t *values) {
    for (int n = 0; n < count; n++)
        if (s->write(offsets[n], values[n]) != OKAY) return n;
    return count;
}

// Runs until the interrupt is up or `budget` cycles have passed; returns 1 when it is up.
API int fl_run(Simulation *s, uint64_t budget) {
    for (uint64_t n = 0; n < budget && !s->top->irq; n++) s->tick();
    return s->top->irq;
}

// Beats of the present run that went to and came from each account.
API void fl_account(Simulation *s, uint64_t base, uint64_t size) { s->memory->account(base, size); }
API void fl_accounted(Simulation *s, int n, uint64_t *read, uint64_t *written) {
    const Account &account = s->memory->accounts[n];
    *read = account.read_beats;
    *written = account.write_beats;
}
// Cycles from the start of the present run to its interrupt; 0 before it.
API uint64_t fl_elapsed(Simulation *s) { return s->ended ? s->ended - s->started : 0; }
// What a monitor of probes.py has counted.
API uint64_t fl_probe(Simulation *s, int index) {
    s->top->probe_index = index;
    s->top->eval();
    return s->top->probe_value;
}

API void fl_statistics(Simulation *s, Statistics *to) { *to = s->memory->statistics; }
API const char *fl_message(Simulation *s, int n) {
    return n < int(s->memory->messages.size()) ? s->memory->messages[n].c_str() : nullptr;
}
API int fl_finding(Simulation *s, int n, Finding *to) {
    if (n >= int(s->memory->findings.size())) return 0;
    *to = s->memory->findings[n];
    return 1;
}
API int fl_quiet(Simulation *s) { return s->memory->quiet(); }

// Waveform of the cycles from `begin` to before `end`; 0 when the library was built without.
API int fl_trace(Simulation *s, const char *path, uint64_t begin, uint64_t end) {
#if VM_TRACE
    s->trace = std::make_unique<VerilatedVcdC>();
    s->top->trace(s->trace.get(), 99);
    s->trace->open(path);
    s->trace_begin = begin;
    s->trace_end = end;
    return 1;
#else
    (void)s, (void)path, (void)begin, (void)end;
    return 0;
#endif
}
