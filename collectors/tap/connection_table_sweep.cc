// The part of ConnectionTable that goes by time and by order of use: what is idle, too old, or at the end of a capture.

#include "collectors/tap/connection_table.h"

#include <algorithm>

namespace rooflined::tap {

namespace {

// How often idle connections and old holes are looked for. With the 200 ms of a hole this stays below the 250 ms that
// the ledger waits.
constexpr Duration kSweepEvery = std::chrono::milliseconds(10);

}  // namespace

void ConnectionTable::sweep(LineTime now) {
  sweep_due_ = now + kSweepEvery;
  sweep_holes(now);
  sweep_idle(Stage::kHandshake, limits_.idle_without_payload_max, now);
  sweep_idle(Stage::kOpen, limits_.idle_max, now);
  sweep_idle(Stage::kIgnored, limits_.ignored_idle_max, now);
  sweep_idle(Stage::kClosed, limits_.closed_kept, now);
}

void ConnectionTable::sweep_holes(LineTime now) {
  for (std::size_t i = 0; i < with_holes_.size();) {
    Connection& connection = *with_holes_[i];
    connection.flow->advance_to(now);
    settle(connection, now);
    if (i < with_holes_.size() && with_holes_[i] == &connection) {
      if (connection.flow->has_hole()) {
        ++i;
        continue;
      }
      with_holes_[i] = with_holes_.back();
      with_holes_[i]->flow->hole_slot = i;
      with_holes_.pop_back();
      connection.flow->hole_slot = Flow::kNotListed;
    }
  }
}

void ConnectionTable::sweep_idle(Stage stage, Duration idle_max, LineTime now) {
  const StageList& list = lists_[static_cast<std::size_t>(stage)];
  while (list.oldest != nullptr && now - list.oldest->last_at > idle_max) {
    Connection& connection = *list.oldest;
    if (stage == Stage::kOpen) close(connection, CloseCause::kIdle, connection.last_at + idle_max);
    erase(connection);
  }
}

void ConnectionTable::finish(LineTime now) {
  for (const StageList& list : lists_) {
    while (list.oldest != nullptr) {
      Connection& connection = *list.oldest;
      if (connection.flow != nullptr) close(connection, CloseCause::kEndOfCapture, now);
      erase(connection);
    }
  }
}

void ConnectionTable::move_to(Connection& connection, Stage stage) {
  unlink(connection);
  connection.stage = stage;
  link(connection);
}

void ConnectionTable::unlink(Connection& connection) {
  StageList& list = lists_[static_cast<std::size_t>(connection.stage)];
  (connection.older != nullptr ? connection.older->newer : list.oldest) = connection.newer;
  (connection.newer != nullptr ? connection.newer->older : list.newest) = connection.older;
  connection.older = nullptr;
  connection.newer = nullptr;
}

void ConnectionTable::link(Connection& connection) {
  StageList& list = lists_[static_cast<std::size_t>(connection.stage)];
  connection.older = list.newest;
  connection.newer = nullptr;
  (list.newest != nullptr ? list.newest->newer : list.oldest) = &connection;
  list.newest = &connection;
}

void ConnectionTable::touch(Connection& connection, LineTime at) {
  connection.last_at = std::max(connection.last_at, at);
  if (connection.newer == nullptr) return;
  unlink(connection);
  link(connection);
}

}  // namespace rooflined::tap
