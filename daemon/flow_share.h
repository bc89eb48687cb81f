// Which share of the flows was watched over the last minutes: what rates are scaled by where the governor left some
// out.
//
// Bounded: the last changes only. Threads: one.

#pragma once

#include "metrics/base/time.h"

#include <algorithm>
#include <vector>

namespace rooflined::daemon {

class FlowShare {
 public:
  void set(unsigned one_in, LineTime at) {
    if (one_in == one_in_) return;
    one_in_ = one_in;
    if (changes_.size() >= kChangesMax) changes_.erase(changes_.begin());
    changes_.push_back(Change{at, 1.0 / one_in});
  }

  unsigned one_in() const { return one_in_; }

  // The mean over the last `span`: 1 where nothing was left out.
  double over(Duration span, LineTime now) const {
    double weighted = 0;
    LineTime end = now;
    const LineTime begin = now - span;
    for (auto change = changes_.rbegin(); change != changes_.rend() && end > begin; ++change) {
      const LineTime since = std::max(change->at, begin);
      if (since < end) weighted += change->share * to_seconds(end - since);
      end = std::min(end, since);
    }
    if (end > begin) weighted += to_seconds(end - begin);
    return weighted / to_seconds(span);
  }

 private:
  // The governor changes its mind every five seconds at most: minutes of it.
  static constexpr std::size_t kChangesMax = 64;
  struct Change {
    LineTime at;
    double share;
  };

  unsigned one_in_ = 1;
  std::vector<Change> changes_;  // oldest first
};

}  // namespace rooflined::daemon
