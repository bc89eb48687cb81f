// What the live window of each target said over the last minutes, so that a page that is opened after something
// happened shows it. Bounded: points by time, targets by the snapshot. No clock: time is the snapshot's. One thread.

#pragma once

#include "metrics/snapshot.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rooflined {

class LiveHistory {
 public:
  static constexpr double kStepSeconds = 5;
  static constexpr double kSpanSeconds = 600;

  // Notes the live windows of the targets, at most one point a step, and hands each target its points. A target that is
  // gone keeps its points while the snapshot shows it.
  void note(Snapshot& snapshot);

 private:
  using Points = std::shared_ptr<const std::vector<RecentPoint>>;

  double noted_at_ = 0;
  std::map<std::string, Points> points_;  // by target
};

}  // namespace rooflined
