// SIGINT and SIGTERM as a flag, for commands that end what they do and say so.

#pragma once

namespace rooflined::daemon {

// While one lives, the two signals set the flag and do nothing else. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool received() const;
};

}  // namespace rooflined::daemon
