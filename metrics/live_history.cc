#include "metrics/live_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rooflined {
namespace {

RecentPoint point_of(const WindowSnapshot& window, double at) {
  RecentPoint point;
  point.at = at;
  point.tokens_per_second = window.tokens_per_second;
  if (window.itl_seconds) point.itl_seconds = window.itl_seconds->mean;
  point.mbu_ratio = window.mbu_ratio;
  return point;
}

}  // namespace

void LiveHistory::note(Snapshot& snapshot) {
  const double now = to_seconds(snapshot.taken_at.since_epoch());
  // A wall clock that was set back would hold every later point off.
  const bool step_over = now - noted_at_ >= kStepSeconds || now < noted_at_;
  if (step_over) noted_at_ = now;
  std::map<std::string, Points> shown;
  for (TargetSnapshot& target : snapshot.targets) {
    if (target.retired) continue;
    const std::string name = target.further ? target.target + ' ' + target.model : target.target;
    Points points = points_[name];
    if (step_over) {
      auto next = std::make_shared<std::vector<RecentPoint>>();
      if (points != nullptr) {
        std::copy_if(points->begin(), points->end(), std::back_inserter(*next),
                     [now](const RecentPoint& point) { return point.at < now && now - point.at <= kSpanSeconds; });
      }
      if (target.live) next->push_back(point_of(*target.live, now));
      points = std::move(next);
    }
    target.recent = points;
    shown.emplace(name, std::move(points));
  }
  points_ = std::move(shown);
}

}  // namespace rooflined
