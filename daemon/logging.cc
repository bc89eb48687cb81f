#include "daemon/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace rooflined::daemon {
namespace {

log::Level lowest = log::Level::kWarning;

spdlog::logger& logger() {
  static const auto instance =
      std::make_shared<spdlog::logger>("rooflined", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return *instance;
}

// sd-daemon(3): "<6>" and so on at the start of a line is the journal's priority.
void write_to_journal(log::Level level, std::string_view line) {
  if (level < lowest) return;
  static constexpr const char* kPrefixes[] = {"<6>", "<4>", "<3>"};
  logger().info("{}{}", kPrefixes[static_cast<int>(level)], line);
}

void write_to_terminal(log::Level level, std::string_view line) {
  if (level < lowest) return;
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  logger().log(kLevels[static_cast<int>(level)], "{}", line);
}

}  // namespace

void start_logging(log::Level threshold) {
  lowest = threshold;
  const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
  logger().set_pattern(journal ? "%v" : "%Y-%m-%dT%H:%M:%S%z %l %v");
  log::set_sink(journal ? write_to_journal : write_to_terminal);
}

}  // namespace rooflined::daemon
