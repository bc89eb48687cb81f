#include "daemon/logging.h"

#include <fmt/chrono.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rooflined::daemon {
namespace {

log::Level lowest = log::Level::kWarning;

spdlog::logger& logger() {
  static const auto instance =
      std::make_shared<spdlog::logger>("rooflined", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return *instance;
}

LogFormat used_format = LogFormat::kText;
bool to_journal = false;

std::string json_line(log::Level level, std::string_view line) {
  static constexpr const char* kNames[] = {"info", "warning", "error"};
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const nlohmann::ordered_json object = {
      {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                           (now - seconds).count())},
      {"level", kNames[static_cast<int>(level)]},
      {"message", line}};
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void write_line(log::Level level, std::string_view line) {
  if (level < lowest) return;
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  // sd-daemon(3): "<6>" and so on at the start of a line is the journal's priority.
  static constexpr const char* kPriorities[] = {"<6>", "<4>", "<3>"};
  const auto index = static_cast<int>(level);
  logger().log(kLevels[index], "{}{}", to_journal ? kPriorities[index] : "",
               used_format == LogFormat::kJson ? json_line(level, line) : std::string(line));
}

}  // namespace

void start_logging(log::Level threshold, LogFormat format) {
  lowest = threshold;
  used_format = format;
  to_journal = std::getenv("JOURNAL_STREAM") != nullptr;
  const bool plain = to_journal || format == LogFormat::kJson;
  logger().set_pattern(plain ? "%v" : "%Y-%m-%dT%H:%M:%S%z %l %v");
  log::set_sink(write_line);
}

}  // namespace rooflined::daemon
