// Watches every allocation of a test program. Linking allocation_watch.cc replaces operator new, so such a program
// stands alone. Threads: one.

#pragma once

#include <cstddef>

namespace rooflined::test {

struct Allocations {
  std::size_t largest = 0;
  std::size_t total = 0;
  std::ptrdiff_t live = 0;  // what was allocated less what was freed
  std::ptrdiff_t peak = 0;  // the most of that
};

void watch_allocations();   // starts from nothing
Allocations allocations();  // since then

}  // namespace rooflined::test
