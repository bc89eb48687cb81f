#include "daemon/neighbours.h"

#include <algorithm>

namespace rooflined::daemon {

bool Neighbours::note_foreign(const Endpoint& server, bool engine, LineTime at) {
  if (engine) {
    servers_.erase(server);
    return false;
  }
  auto known = servers_.find(server);
  if (known == servers_.end()) {
    if (servers_.size() >= kServersMax) {
      const auto oldest = std::min_element(servers_.begin(), servers_.end(), [](const auto& a, const auto& b) {
        return a.second.seen_at < b.second.seen_at;
      });
      if (oldest->second.back_at) return false;
      servers_.erase(oldest);
    }
    known = servers_.emplace(server, Server()).first;
  }
  Server& neighbour = known->second;
  neighbour.seen_at = at;
  if (neighbour.back_at || ++neighbour.foreign < kForeignMax || left_out_.size() >= kLeftOutMax) return false;
  neighbour.foreign = 0;
  neighbour.back_at = at + neighbour.away;
  neighbour.away = std::min(2 * neighbour.away, kAwayMax);
  left_out_.push_back(server);
  return true;
}

bool Neighbours::advance_to(LineTime now) {
  const std::size_t before = left_out_.size();
  std::erase_if(left_out_, [&](const Endpoint& server) {
    Server& neighbour = servers_[server];
    if (now < *neighbour.back_at) return false;
    neighbour.back_at.reset();
    neighbour.seen_at = now;
    return true;
  });
  return left_out_.size() != before;
}

}  // namespace rooflined::daemon
