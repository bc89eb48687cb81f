// How long a token of a running stream took, second by second: hidden work is laid back at that pace.
//
// A ring of slices of 1 s over ten minutes. Not thread-safe.

#pragma once

#include "metrics/base/time.h"

#include <cstdint>
#include <vector>

namespace rooflined {

class PaceHistory {
 public:
  PaceHistory();

  // `tokens` of a stream that took `seconds` until `at`.
  void add(LineTime at, double tokens, double seconds);
  // When work on `tokens` that ended at `end` began, at the pace of the streams that ran then (else of the latest
  // before); never before `earliest`, and then where no pace is known.
  LineTime start_of(LineTime end, LineTime earliest, double tokens) const;

 private:
  struct Slice {
    std::int64_t index = INT64_MIN;
    double tokens = 0;
    double seconds = 0;
  };

  std::vector<Slice> ring_;
  double pace_ = 0;  // seconds a token, of late; 0: unknown
};

}  // namespace rooflined
