// A descriptor for a stop page to heed: readable from knock() to judge().

#pragma once

#include "collectors/ceiling/stop_page.h"
#include "tests/support/catch.h"

#include <unistd.h>

#include <cstdlib>

namespace rooflined::ceiling {

class Knocker {
 public:
  explicit Knocker(StopPage& page) {
    REQUIRE(::pipe(fds_) == 0);
    page.heed(fds_[0]);
  }
  ~Knocker() {
    ::close(fds_[0]);
    ::close(fds_[1]);
  }
  // On any thread, beside checks of another one.
  void knock() const {
    if (::write(fds_[1], "k", 1) != 1) std::abort();
  }
  void judge() const {
    char one = 0;
    if (::read(fds_[0], &one, 1) != 1) std::abort();
  }

 private:
  int fds_[2] = {};
};

}  // namespace rooflined::ceiling
