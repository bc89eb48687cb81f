// A descriptor for a stop page to heed: readable from knock() to judge().

#pragma once

#include "collectors/ceiling/stop_page.h"
#include "tests/support/catch.h"

#include <unistd.h>

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
  void knock() const { REQUIRE(::write(fds_[1], "k", 1) == 1); }
  void judge() const {
    char one = 0;
    REQUIRE(::read(fds_[0], &one, 1) == 1);
  }

 private:
  int fds_[2] = {};
};

}  // namespace rooflined::ceiling
