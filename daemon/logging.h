// Puts spdlog behind metrics/base/log.h: lines to stderr, with journald's level prefix where stderr is the journal.

#pragma once

#include "metrics/base/log.h"

namespace rooflined::daemon {

enum class LogFormat { kText, kJson };

// Lines below `threshold` are dropped. May be called again to change both.
void start_logging(log::Level threshold, LogFormat format = LogFormat::kText);

}  // namespace rooflined::daemon
