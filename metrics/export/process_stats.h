// What the kernel says about this process, for the process_* metrics that every exporter has.
//
// Reads <proc root>/self and <proc root>/stat; a figure that cannot be read is absent. Thread rule: any.

#pragma once

#include <optional>
#include <string>

namespace rooflined::metrics_export {

struct ProcessStats {
  std::optional<double> cpu_seconds;
  std::optional<double> resident_bytes;
  std::optional<double> virtual_bytes;
  std::optional<double> open_fds;
  std::optional<double> max_fds;
  std::optional<double> start_time_seconds;  // since 1970
};

ProcessStats read_process_stats(const std::string& proc_root);

}  // namespace rooflined::metrics_export
