#include "collectors/ceiling/memory_watch.h"

#include "collectors/ceiling/conditions.h"
#include "collectors/ceiling/system_files.h"
#include "collectors/ceiling/working_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace rooflined::ceiling {
namespace {

// Some task waited this long in all. Only reclaim, refault and compaction count as waiting, none of which a probe on
// free memory causes; a little of it is a swapped page of somebody who was asleep.
constexpr std::uint64_t kStalledMaxUs = 10'000;

Bytes read_free(const std::string& root) {
  return value_of_line(read_system_file(root, "/proc/meminfo").value_or(""), "MemFree").value_or(0) * kKiB;
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", microseconds since boot.
std::uint64_t read_stalled_us(const std::string& root) {
  const std::string text = read_system_file(root, "/proc/pressure/memory").value_or("");
  constexpr std::string_view kKey = "total=";
  const std::size_t at = text.find(kKey);
  if (!text.starts_with("some ") || at == std::string::npos) return 0;
  const std::string_view rest = std::string_view(text).substr(at + kKey.size());
  return parse_integer(rest.substr(0, rest.find('\n'))).value_or(0);
}

}  // namespace

MemoryWatch::MemoryWatch(std::string root)
    : root_(std::move(root)), reclaim_events_(read_reclaim_events(root_)), stalled_us_(read_stalled_us(root_)) {
  const Bytes free = read_free(root_);
  kept_ = free - std::min(free, read_memory_facts(root_).free);
}

Status MemoryWatch::look() const {
  if (read_reclaim_events(root_) != reclaim_events_) {
    return Error{ErrorCode::kLimit, "reclaim", "the kernel reclaimed or compacted memory during the run"};
  }
  if (read_stalled_us(root_) > stalled_us_ + kStalledMaxUs) {
    return Error{ErrorCode::kLimit, "pressure", "tasks waited for memory during the run"};
  }
  if (const Bytes free = read_free(root_); free < kept_) {
    return Error{ErrorCode::kLimit, "memory",
                 fmt::format("{} MB are free, under the watermarks of {} MB", free / 1000000, kept_ / 1000000)};
  }
  return ok_status();
}

}  // namespace rooflined::ceiling
