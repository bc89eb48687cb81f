// The report of a trace: the object of `rooflined replay`, with null where a trace does not tell.

#pragma once

#include "daemon/trace_file.h"
#include "metrics/base/units.h"
#include "metrics/log_histogram.h"

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace rooflined::daemon {

class TraceReport final : public TraceSink {
 public:
  TraceReport();
  ~TraceReport() override;

  RecordObserver& engine(std::string_view name) override;
  nlohmann::json json(std::optional<BytesPerSecond> ceiling) const;

 private:
  class Engine;
  // More engines than a node has ports: a bound on what a file can make us keep.
  static constexpr std::size_t kEnginesMax = 256;
  std::map<std::string, std::unique_ptr<Engine>, std::less<>> engines_;
};

}  // namespace rooflined::daemon
