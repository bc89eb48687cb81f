// What to believe: the confirmed results of this machine, and which of them is its ceiling.
//
//   in:   results of measurements that were stable and confirmed, oldest first
//   out:  the adopted one, and whether the newest is suspect
//
// Constant contention passes every test within one measurement, so results are judged against each other. Adopted is
// the second highest of the last eight: the highest is often a lucky one, and one that others' load held down counts
// for nothing beside two that it did not. A drop that lasts is followed when seven results show it. No clock, no I/O;
// plain data, threads: one at a time.

#pragma once

#include "collectors/ceiling/measure.h"
#include "metrics/base/time.h"
#include "metrics/base/units.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rooflined::ceiling {

inline constexpr std::size_t kResultsKept = 8;
// A result farther from the adopted one is suspect: less is what contention looks like, more what a ceiling that was
// adopted under contention does (design.md §4).
inline constexpr double kSuspectBelow = 0.75;
inline constexpr double kSuspectAbove = 1.33;

struct ConfirmedResult {
  WallTime measured_at;
  BytesPerSecond ceiling = 0;
  BytesPerSecond median = 0;
  std::string kernel;
  unsigned threads = 0;
  Bytes working_set = 0;
  bool cache_inflated = false;
  std::vector<NodeResult> nodes;  // those that were stable; of a machine with several memory nodes

  double median_to_best() const { return ceiling > 0 ? median / ceiling : 0; }
};

// Requires: measurement.adoptable().
ConfirmedResult confirmed_result(const Measurement& measurement, WallTime measured_at);

class History {
 public:
  enum class Judgement : std::uint8_t { kAdopted, kSuspect };

  // kAdopted: the result counts from now on (it need not be the adopted one). kSuspect: it waits until a second one
  // agrees. A high one agrees with any other high one among the next eight, and both then count: nothing makes memory
  // look faster twice. A low one has to come twice in a row, within a tenth, and the pair counts once: contention makes
  // many low results.
  Judgement take(ConfirmedResult result);
  // From a file: counts, or waits, without being judged.
  void restore(ConfirmedResult result);
  void restore_suspect(ConfirmedResult result);

  // The second highest of the results kept; of one result, that one.
  const ConfirmedResult* adopted() const;
  // The memory nodes one by one, by the newest result that measured them; empty on a machine with one.
  const std::vector<NodeResult>& nodes() const;
  // Oldest first, at most kResultsKept.
  const std::vector<ConfirmedResult>& results() const { return results_; }
  // A high and a low one at most.
  std::vector<ConfirmedResult> suspects() const;
  // What was taken last is far from the adopted ceiling, or is the only result: a window that only looked idle may have
  // made it.
  bool newest_is_suspect() const { return newest_is_suspect_ || results_.size() == 1; }
  // It is too low: somebody used the memory, whatever the readings of the host said.
  bool newest_is_low() const { return low_.has_value(); }
  // So few that the second highest may be a contended one.
  bool young() const { return !results_.empty() && results_.size() < kResultsTrusted; }
  bool empty() const { return results_.empty(); }

 private:
  static constexpr std::size_t kResultsTrusted = 3;

  std::vector<ConfirmedResult> results_;
  std::optional<ConfirmedResult> high_;
  std::optional<ConfirmedResult> low_;
  std::size_t taken_since_high_ = 0;
  bool newest_is_suspect_ = false;
};

}  // namespace rooflined::ceiling
