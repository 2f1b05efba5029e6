// AXI4 memory for the compiled simulation: regions given by the caller, a bus shared by reads and writes, faults.
//
// A cycle is sample(), which sees what the design does with the inputs that were driven before, then drive() with the
// inputs of the next cycle, then the edge. Answers never depend on what the design does in the same cycle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

constexpr uint32_t BYTES = DATA_BITS / 8;
constexpr uint32_t PAGE = 4096;
constexpr size_t KEPT_MESSAGES = 32;
constexpr size_t KEPT_FINDINGS = 4096;
enum Response : uint8_t { OKAY = 0, SLVERR = 2, DECERR = 3 };

struct Timing {
    uint32_t read_latency;   // cycles from AR to the first beat, at least 1
    uint32_t write_latency;  // cycles from the last W beat to B, at least 1
    uint32_t jitter;         // added to both at random, from 0 to this
    uint32_t write_jitter;   // added to the second at random besides, from 0 to this
    uint32_t outstanding;    // bursts held in each direction
    uint32_t stall;          // chance in 65536 that a channel pauses in a cycle
    uint32_t reorder;        // answer different identifiers out of order, beats of reads interleaved
    double beats_per_cycle;  // R and W together
    uint64_t seed;
};

struct Statistics {
    uint64_t cycles, read_bursts, write_bursts, read_beats, write_beats, busy_cycles;
    uint64_t outside, guard, protocol, injected, early_reads, messages;
};

// An access where none may be: one beat.
enum Kind : uint32_t { READ_OUTSIDE = 0, WRITE_OUTSIDE = 1, WRITE_READ_ONLY = 2 };
struct Finding {
    uint64_t cycle, address;
    uint32_t size, kind;
};

// Port of any width as bytes: Verilator keeps narrow ports in integers, wide ones in arrays of words, both little-endian.
template <class Port>
uint8_t *raw(Port &port) {
    return reinterpret_cast<uint8_t *>(&port);
}

struct Region {
    uint64_t base, size;
    uint8_t *data;
    bool writable;
};

// Addresses whose beats are counted in each run, whatever region they lie in.
struct Account {
    uint64_t base, size, read_beats, write_beats;
};

struct Fault {
    uint64_t address;
    bool write;
    uint8_t response;
};

// The beat that is the `beat`-th of its direction since the simulation began; `struck` is the address of its burst then.
struct BeatFault {
    uint64_t beat;
    bool write;
    uint8_t response;
    bool hit;
    uint64_t struck;
};

// Channels (bits: AR, AW, W, R, B) on which the memory does nothing from cycle `begin` to before `end`.
enum Channel : uint32_t { AR = 1, AW = 2, W = 4, R = 8, B = 16 };
struct Freeze {
    uint64_t begin, end;
    uint32_t channels;
};

struct Request {
    uint64_t address;
    uint32_t id, length, size, burst;
    bool operator==(const Request &other) const {
        return address == other.address && id == other.id && length == other.length && size == other.size &&
               burst == other.burst;
    }
};

struct Burst {
    uint64_t address;  // of the next beat, aligned
    uint64_t begin;
    uint32_t id, beats, done;
    uint64_t ready;
    uint8_t response;
    const Region *region;
    Account *account;
    std::vector<uint8_t> data, strobe;  // writes: kept until they are acknowledged
};

template <class Top>
class AxiMemory {
  public:
    AxiMemory(Top &top, const Timing &timing) : top_(top), timing_(timing), random_(timing.seed * 2 + 1) {}

    Statistics statistics{};
    std::vector<std::string> messages;
    std::vector<Finding> findings;
    std::vector<BeatFault> beat_faults;
    std::deque<Account> accounts;

    void account(uint64_t base, uint64_t size) { accounts.push_back({base, size, 0, 0}); }
    void begin_accounts() {
        for (auto &account : accounts) account.read_beats = account.write_beats = 0;
    }

    void add(uint64_t base, uint8_t *data, uint64_t size, bool writable) {
        regions_.push_back({base, size, data, writable});
        std::sort(regions_.begin(), regions_.end(), [](auto &a, auto &b) { return a.base < b.base; });
    }

    void inject(uint64_t address, bool write, uint8_t response) { faults_.push_back({address, write, response}); }

    void freeze(uint32_t channels, uint64_t begin, uint64_t end) { freezes_.push_back({begin, end, channels}); }

    // Nothing is injected any more, and what was found is forgotten.
    void pardon() {
        faults_.clear();
        beat_faults.clear();
        freezes_.clear();
        findings.clear();
        messages.clear();
        statistics.outside = statistics.guard = statistics.protocol = statistics.injected = 0;
        statistics.early_reads = statistics.messages = 0;
    }

    // A reset of the design: what is in flight is forgotten, memory stays.
    void reset() {
        reads_.clear();
        writes_.clear();
        replies_.clear();
        r_shown_ = b_shown_ = false;
        stalled_ar_ = stalled_aw_ = stalled_w_ = false;
    }

    void drive() {
        credit_ = std::min(credit_ + timing_.beats_per_cycle, 1 + timing_.beats_per_cycle);
        bool budget = credit_ >= 1;
        top_.m_axi_arready = reads_.size() < timing_.outstanding && !pause(AR);
        top_.m_axi_awready = writes_.size() + replies_.size() < timing_.outstanding && !pause(AW);
        top_.m_axi_wready = budget && !writes_.empty() && !pause(W);
        if (!r_shown_ && budget && !pause(R)) show_read();
        top_.m_axi_rvalid = r_shown_;
        if (!b_shown_ && !pause(B)) show_reply();
        top_.m_axi_bvalid = b_shown_;
    }

    void sample() {
        uint64_t now = statistics.cycles;
        bool moved = false;
        if (r_shown_ && top_.m_axi_rready) {
            end_read_beat();
            moved = true;
        }
        if (b_shown_ && top_.m_axi_bready) {
            replies_.erase(replies_.begin() + b_index_);
            b_shown_ = false;
        }
        if (stalled_w_ && (!top_.m_axi_wvalid || !same_write_beat())) violation("W changed while it was stalled", now);
        stalled_w_ = top_.m_axi_wvalid && !top_.m_axi_wready;
        if (stalled_w_) keep_write_beat();
        if (top_.m_axi_wvalid && top_.m_axi_wready) {
            take_write_beat();
            moved = true;
        }
        Request read{top_.m_axi_araddr, top_.m_axi_arid, top_.m_axi_arlen, top_.m_axi_arsize, top_.m_axi_arburst};
        if (stalled_ar_ && (!top_.m_axi_arvalid || !(read == last_ar_))) violation("AR changed while it was stalled", now);
        stalled_ar_ = top_.m_axi_arvalid && !top_.m_axi_arready;
        last_ar_ = read;
        if (top_.m_axi_arvalid && top_.m_axi_arready) take_read(read);
        Request write{top_.m_axi_awaddr, top_.m_axi_awid, top_.m_axi_awlen, top_.m_axi_awsize, top_.m_axi_awburst};
        if (stalled_aw_ && (!top_.m_axi_awvalid || !(write == last_aw_)))
            violation("AW changed while it was stalled", now);
        stalled_aw_ = top_.m_axi_awvalid && !top_.m_axi_awready;
        last_aw_ = write;
        if (top_.m_axi_awvalid && top_.m_axi_awready) take_write(write);
        statistics.busy_cycles += moved;
    }

    bool quiet() const { return reads_.empty() && writes_.empty() && replies_.empty(); }

  private:
    Top &top_;
    Timing timing_;
    uint64_t random_;
    double credit_ = 0;
    std::vector<Region> regions_;
    std::vector<Fault> faults_;
    std::vector<Freeze> freezes_;
    std::deque<Burst> reads_, writes_, replies_;
    std::vector<std::vector<uint8_t>> spare_;
    size_t r_index_ = 0, b_index_ = 0;
    bool r_shown_ = false, b_shown_ = false, stalled_ar_ = false, stalled_aw_ = false, stalled_w_ = false;
    Request last_ar_{}, last_aw_{};
    uint8_t last_data_[BYTES], last_strobe_[(BYTES + 7) / 8];
    bool last_wlast_ = false;

    uint64_t draw() {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return random_ * 0x2545F4914F6CDD1DULL >> 16;
    }
    bool pause(Channel channel) {
        for (auto &freeze : freezes_)
            if (freeze.channels & channel && statistics.cycles >= freeze.begin && statistics.cycles < freeze.end) return true;
        return timing_.stall && (draw() & 0xffff) < timing_.stall;
    }
    uint64_t delay(uint32_t latency) { return statistics.cycles + latency + upto(timing_.jitter); }
    uint64_t upto(uint32_t most) { return most ? draw() % (most + 1) : 0; }

    void note(const char *what, uint64_t where) {
        char text[160];
        snprintf(text, sizeof text, "cycle %llu: %s 0x%010llx", (unsigned long long)statistics.cycles, what,
                 (unsigned long long)where);
        if (messages.size() < KEPT_MESSAGES) messages.push_back(text);
        statistics.messages++;
    }
    void find_fault(Kind kind, const char *what, uint64_t address) {
        note(what, address);
        if (findings.size() < KEPT_FINDINGS) findings.push_back({statistics.cycles, address, BYTES, kind});
    }
    // What the beat that is now at hand is answered with, on account of its number.
    uint8_t strike(bool write, uint64_t beat, const Burst &burst) {
        uint8_t response = OKAY;
        for (auto &fault : beat_faults)
            if (fault.write == write && fault.beat == beat) {
                response = std::max(response, fault.response);
                fault.hit = true;
                fault.struck = burst.begin;
                statistics.injected++;
            }
        return response;
    }
    void violation(const char *what, uint64_t where) {
        statistics.protocol++;
        note(what, where);
    }

    const Region *find(uint64_t address) const {
        auto above = std::upper_bound(regions_.begin(), regions_.end(), address,
                                      [](uint64_t a, const Region &r) { return a < r.base; });
        if (above == regions_.begin()) return nullptr;
        const Region *region = &*(above - 1);
        return address - region->base < region->size ? region : nullptr;
    }

    Account *account_of(uint64_t address) {
        for (auto &account : accounts)
            if (address - account.base < account.size) return &account;
        return nullptr;
    }

    Burst begin_burst(const Request &request, bool write) {
        uint64_t aligned = request.address / BYTES * BYTES;
        uint32_t beats = request.length + 1;
        if ((1u << request.size) != BYTES) violation("burst narrower than the bus at", request.address);
        if (request.burst != 1) violation("burst that is not INCR at", request.address);
        if (aligned % PAGE + uint64_t(beats) * BYTES > PAGE) violation("burst across 4 KiB at", request.address);
        Burst burst{aligned, aligned, request.id, beats, 0, 0, OKAY, find(aligned), account_of(aligned), {}, {}};
        for (auto &fault : faults_)
            if (fault.write == write && fault.address >= aligned && fault.address < aligned + uint64_t(beats) * BYTES)
                burst.response = std::max(burst.response, write ? fault.response : uint8_t(OKAY));
        return burst;
    }

    bool inside(const Burst &burst) const {
        return burst.region && burst.address + BYTES <= burst.region->base + burst.region->size;
    }

    void take_read(const Request &request) {
        Burst burst = begin_burst(request, false);
        burst.ready = delay(timing_.read_latency);
        statistics.read_bursts++;
        uint64_t end = burst.begin + uint64_t(burst.beats) * BYTES;
        auto overlaps = [&](const Burst &w) { return w.begin < end && burst.begin < w.begin + uint64_t(w.beats) * BYTES; };
        for (auto *queue : {&writes_, &replies_})
            for (auto &write : *queue) statistics.early_reads += overlaps(write);
        reads_.push_back(std::move(burst));
    }

    // Whether an older burst of the same identifier is before entry n.
    static bool behind(const std::deque<Burst> &queue, size_t n) {
        for (size_t k = 0; k < n; k++)
            if (queue[k].id == queue[n].id) return true;
        return false;
    }

    // Entry that may be answered now, or the queue's size.
    size_t pick(const std::deque<Burst> &queue) {
        uint64_t now = statistics.cycles;
        if (queue.empty()) return 0;
        if (!timing_.reorder) return queue.front().ready <= now ? 0 : queue.size();
        size_t first = draw() % queue.size();
        for (size_t n = 0; n < queue.size(); n++) {
            size_t candidate = (first + n) % queue.size();
            if (queue[candidate].ready <= now && !behind(queue, candidate)) return candidate;
        }
        return queue.size();
    }

    void show_read() {
        r_index_ = pick(reads_);
        if (r_index_ == reads_.size()) return;
        const Burst &burst = reads_[r_index_];
        uint8_t response = OKAY;
        if (inside(burst)) {
            memcpy(raw(top_.m_axi_rdata), burst.region->data + (burst.address - burst.region->base), BYTES);
        } else {
            memset(raw(top_.m_axi_rdata), 0xAD, BYTES);
            response = DECERR;
            statistics.outside++;
            find_fault(READ_OUTSIDE, "read outside every region at", burst.address);
        }
        for (auto &fault : faults_)
            if (!fault.write && fault.address >= burst.address && fault.address < burst.address + BYTES) {
                response = fault.response;
                statistics.injected++;
            }
        response = std::max(response, strike(false, statistics.read_beats, burst));
        top_.m_axi_rid = burst.id;
        top_.m_axi_rresp = response;
        top_.m_axi_rlast = burst.done + 1 == burst.beats;
        r_shown_ = true;
    }

    void end_read_beat() {
        r_shown_ = false;
        credit_ -= 1;
        statistics.read_beats++;
        Burst &burst = reads_[r_index_];
        if (burst.account) burst.account->read_beats++;
        burst.address += BYTES;
        if (++burst.done == burst.beats) reads_.erase(reads_.begin() + r_index_);
    }

    std::vector<uint8_t> fetch_buffer() {
        if (spare_.empty()) return {};
        std::vector<uint8_t> buffer = std::move(spare_.back());
        spare_.pop_back();
        buffer.clear();
        return buffer;
    }

    void take_write(const Request &request) {
        Burst burst = begin_burst(request, true);
        if (burst.response != OKAY) statistics.injected++;
        burst.data = fetch_buffer();
        burst.strobe = fetch_buffer();
        statistics.write_bursts++;
        writes_.push_back(std::move(burst));
    }

    void take_write_beat() {
        credit_ -= 1;
        statistics.write_beats++;
        Burst &burst = writes_.front();
        burst.response = std::max(burst.response, strike(true, statistics.write_beats - 1, burst));
        const uint8_t *data = raw(top_.m_axi_wdata), *strobe = raw(top_.m_axi_wstrb);
        burst.data.insert(burst.data.end(), data, data + BYTES);
        burst.strobe.insert(burst.strobe.end(), strobe, strobe + (BYTES + 7) / 8);
        bool written = std::any_of(strobe, strobe + (BYTES + 7) / 8, [](uint8_t s) { return s != 0; });
        if (written && !inside(burst)) {
            burst.response = DECERR;
            statistics.outside++;
            find_fault(WRITE_OUTSIDE, "write outside every region at", burst.address);
        } else if (written && !burst.region->writable) {
            burst.response = std::max(burst.response, uint8_t(SLVERR));
            statistics.guard++;
            find_fault(WRITE_READ_ONLY, "write to a read-only region at", burst.address);
        }
        burst.address += BYTES;
        if (burst.account) burst.account->write_beats++;
        bool last = ++burst.done == burst.beats;
        if (last != bool(top_.m_axi_wlast)) violation("WLAST misplaced in the burst at", burst.begin);
        if (last) {
            burst.ready = delay(timing_.write_latency) + upto(timing_.write_jitter);
            replies_.push_back(std::move(burst));
            writes_.pop_front();
        }
    }

    bool same_write_beat() {
        return !memcmp(last_data_, raw(top_.m_axi_wdata), BYTES) &&
               !memcmp(last_strobe_, raw(top_.m_axi_wstrb), (BYTES + 7) / 8) && last_wlast_ == bool(top_.m_axi_wlast);
    }
    void keep_write_beat() {
        memcpy(last_data_, raw(top_.m_axi_wdata), BYTES);
        memcpy(last_strobe_, raw(top_.m_axi_wstrb), (BYTES + 7) / 8);
        last_wlast_ = top_.m_axi_wlast;
    }

    // Data reach memory only with their acknowledgement, so that a design that does not wait for it reads old data.
    void show_reply() {
        b_index_ = pick(replies_);
        if (b_index_ == replies_.size()) return;
        Burst &burst = replies_[b_index_];
        if (burst.response == OKAY && burst.region) commit(burst);
        spare_.push_back(std::move(burst.data));
        spare_.push_back(std::move(burst.strobe));
        top_.m_axi_bid = burst.id;
        top_.m_axi_bresp = burst.response;
        b_shown_ = true;
    }

    void commit(const Burst &burst) {
        uint8_t *to = burst.region->data + (burst.begin - burst.region->base);
        const uint8_t *from = burst.data.data(), *strobe = burst.strobe.data();
        for (uint32_t beat = 0; beat < burst.beats; beat++, to += BYTES, from += BYTES, strobe += (BYTES + 7) / 8) {
            bool whole = BYTES >= 8 && std::all_of(strobe, strobe + BYTES / 8, [](uint8_t s) { return s == 0xff; });
            if (whole) {
                memcpy(to, from, BYTES);
                continue;
            }
            for (uint32_t byte = 0; byte < BYTES; byte++)
                if (strobe[byte / 8] >> byte % 8 & 1) to[byte] = from[byte];
        }
    }
};
