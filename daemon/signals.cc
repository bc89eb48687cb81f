#include "daemon/signals.h"

#include <csignal>

namespace rooflined::daemon {
namespace {

volatile std::sig_atomic_t stop_received = 0;

void on_stop(int) {
  stop_received = 1;
}

}  // namespace

StopSignals::StopSignals() {
  stop_received = 0;
  struct sigaction action = {};
  action.sa_handler = on_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool StopSignals::received() const {
  return stop_received != 0;
}

}  // namespace rooflined::daemon
