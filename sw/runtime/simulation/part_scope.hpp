// What the instances of one simulation have in common: set while they are opened, in the thread that opens them.
#pragma once
#include <memory>

struct PartScope {
    int threads = 1;
    std::shared_ptr<void> group;
};

inline thread_local PartScope *part_scope = nullptr;
