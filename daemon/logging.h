// Puts spdlog behind metrics/base/log.h: lines to stderr, with journald's level prefix where stderr is the journal.

#pragma once

namespace rooflined::daemon {

void start_logging();

}  // namespace rooflined::daemon
