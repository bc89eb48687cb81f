// Slices of ten seconds of an engine's work, for telling what a deploy did: deploy-change.md, step 1.
//
//   in:   settled interval records, in about the order of time; times that do not count
//   out:  for each slice with enough undisturbed intervals: the median bytes per second of a pass, the median
//         inter-token latency, and the batch and context at which they were
//
// An interval is undisturbed where it overlaps no prefill of its engine, no decode of another engine on the same
// memory, and no time in which a client of the engine did not read. Bounded: the last open slices, a sample of each
// one's intervals. There is no clock. Threads: one.

#pragma once

#include "metrics/base/time.h"
#include "metrics/interval_record.h"
#include "metrics/time_spans.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace rooflined {

// Natural logarithms. Floats: 2,000 of these are kept for each of a target's last generations.
struct DeploySlice {
  std::int64_t index = 0;  // line time / DeploySlices::kSpan
  float log_batch = 0;
  float log_context = 0;
  float log_itl = 0;
  float log_rate = 0;        // bytes per second of a pass
  bool bytes_known = false;  // otherwise log_rate says nothing
};

class DeploySlices {
 public:
  static constexpr Duration kSpan = std::chrono::seconds(10);
  static constexpr std::size_t kIntervalsMin = 20;

  void add(const IntervalRecord& record);
  // One more client of the engine does not read, or one less.
  void client_stops(LineTime at);
  void client_reads(LineTime at);
  // Nothing of this time counts: packets were lost, or flows are left out.
  void spoil(LineTime from, LineTime to) { spoilt_.add(from, to); }

  // When the engine decoded, as far back as the slices that are open.
  const TimeSpans& decoding() const { return decoding_; }

  // The slices that ended by `settled`, oldest first; they are forgotten. Requires: every record before `settled` came,
  // here and to the engines whose decode is in `others`.
  std::vector<DeploySlice> take_until(LineTime settled, std::span<const TimeSpans* const> others);

 private:
  static constexpr std::size_t kOpenMax = 8;
  static constexpr std::size_t kSamplesMax = 512;

  struct Sample {
    LineTime a;
    LineTime b;
    float rate;
    float itl;
    float batch;
    float context;
    bool bytes_known;
  };
  struct Open {
    std::int64_t index = 0;
    std::uint64_t seen = 0;
    std::uint64_t stride = 1;  // every so many-th interval is a sample: a power of two
    std::vector<Sample> samples;
  };

  Open* open_at(std::int64_t index);

  std::deque<Open> open_;  // by index
  TimeSpans decoding_;
  TimeSpans spoilt_;
  std::size_t clients_stopped_ = 0;
  LineTime stopped_since_;
};

}  // namespace rooflined
