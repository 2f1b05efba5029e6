// The instances, in one simulation, of a module that is compiled once. They are evaluated together, by several threads,
// each of which takes a run of neighbours.
//
// Whether sharing pays depends on what else the machine does; it is measured again and again, and done where it does.
//
// A thread that has nothing to do spins for a while, since the next cycle is some microseconds away, and then sleeps. The
// thread that asked evaluates whatever no other one has begun, so threads that get no processor hold nothing up.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

template <typename Part> class PartGroup {
public:
    explicit PartGroup(int threads) : helpers_wanted(threads - 1) {}

    ~PartGroup() {
        leave = true;
        {
            std::lock_guard<std::mutex> guard(mutex);
            asleep.notify_all();
        }
        for (auto &helper : helpers) helper.join();
    }

    // Before the first cycle.
    void add(Part *part) { parts.push_back(part); }

    // The part's inputs are those of the cycle to come.
    void enter(Part *part) {
        part->waits = true;
        waiting++;
    }

    // One cycle of everything that waits. All parts do, unless the logic around them lets some of them be seen earlier.
    void run() {
        if (!waiting) return;
        if (helpers_wanted > 0 && waiting == parts.size() && sharing_pays()) {
            share();
        } else if (waiting == parts.size()) {
            Part::cycle(parts.data(), parts.data() + parts.size());
        } else {
            for (Part *&part : parts)
                if (part->waits) Part::cycle(&part, &part + 1);
        }
        for (Part *part : parts) part->waits = false;
        waiting = 0;
    }

private:
    static constexpr int SPINS = 20000;
    // Cycles for which one way is kept, and after how many such times the slower one is tried again.
    static constexpr int PERIOD = 256, RETRY = 128;

    using Clock = std::chrono::steady_clock;

    bool sharing_pays() {
        if (left-- == 0) {
            auto now = Clock::now();
            spent[shared] = now - since;
            since = now;
            left = PERIOD;
            bool better = spent[true] < spent[false];
            shared = ++periods % RETRY == 0 ? !better : better;
        }
        return shared;
    }

    void share() {
        while (static_cast<int>(helpers.size()) < helpers_wanted) helpers.emplace_back([this] { help(); });
        done.store(0, std::memory_order_relaxed);
        next.store(0, std::memory_order_release);
        if (sleepers.load()) {
            std::lock_guard<std::mutex> guard(mutex);
            asleep.notify_all();
        }
        work();
        while (done.load(std::memory_order_acquire) != runs()) relax();
    }

    // As many runs of neighbours as there are threads.
    std::size_t runs() const { return std::min<std::size_t>(helpers_wanted + 1, parts.size()); }

    // Takes runs one by one until all are taken. A run is taken once: `next` goes back to 0 when all are done.
    bool work() {
        bool any = false;
        while (next.load(std::memory_order_acquire) < runs()) {
            std::size_t mine = next.fetch_add(1, std::memory_order_acq_rel);
            if (mine >= runs()) break;
            Part::cycle(&parts[mine * parts.size() / runs()], parts.data() + (mine + 1) * parts.size() / runs());
            done.fetch_add(1, std::memory_order_release);
            any = true;
        }
        return any;
    }

    void help() {
        for (int spins = 0; !leave; spins++) {
            if (work()) spins = 0;
            if (spins < SPINS) {
                relax();
                continue;
            }
            std::unique_lock<std::mutex> guard(mutex);
            sleepers++;
            asleep.wait(guard, [this] { return leave || next.load() < runs(); });
            sleepers--;
            spins = 0;
        }
    }

    static void relax() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        std::this_thread::yield();
#endif
    }

    std::vector<Part *> parts;
    std::size_t waiting = 0;
    const int helpers_wanted;
    std::vector<std::thread> helpers;
    int left = PERIOD, periods = 0;
    bool shared = false;
    Clock::time_point since = Clock::now();
    Clock::duration spent[2]{};
    std::atomic<std::size_t> next{~std::size_t{0}}, done{0};
    std::atomic<bool> leave{false};
    std::atomic<int> sleepers{0};
    std::mutex mutex;
    std::condition_variable asleep;
};
