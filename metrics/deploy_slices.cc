#include "metrics/deploy_slices.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// What a client that reads again is sent at first was generated while it did not.
constexpr Duration kCatchUp = std::chrono::seconds(1);

float median(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace

DeploySlices::Open* DeploySlices::open_at(std::int64_t index) {
  if (!open_.empty() && open_.back().index == index) return &open_.back();
  const auto at = std::lower_bound(open_.begin(), open_.end(), index,
                                   [](const Open& open, std::int64_t other) { return open.index < other; });
  if (at != open_.end() && at->index == index) return &*at;
  if (open_.size() == kOpenMax) {
    if (at == open_.begin()) return nullptr;
    open_.pop_front();
    return open_at(index);
  }
  return &*open_.insert(at, Open{.index = index, .seen = 0, .stride = 1, .samples = {}});
}

void DeploySlices::add(const IntervalRecord& record) {
  decoding_.add(record.a, record.b);
  if (record.overlap_seconds > 0 || record.busy_seconds <= 0 || record.tokens <= 0) return;
  Open* open = open_at(record.b.ns() / kSpan.count());
  if (open == nullptr || (open->seen++ & (open->stride - 1)) != 0) return;
  if (open->samples.size() == kSamplesMax) {
    for (std::size_t i = 0; 2 * i < kSamplesMax; ++i) open->samples[i] = open->samples[2 * i];
    open->samples.resize(kSamplesMax / 2);
    open->stride *= 2;
  }
  open->samples.push_back(Sample{record.a, record.b, static_cast<float>(record.bytes() / record.busy_seconds),
                                 static_cast<float>(record.sequence_seconds / record.tokens),
                                 static_cast<float>(record.batch),
                                 static_cast<float>(record.context_sum / record.tokens), record.bytes_known});
}

void DeploySlices::client_stops(LineTime at) {
  if (clients_stopped_++ == 0) stopped_since_ = at;
}

void DeploySlices::client_reads(LineTime at) {
  if (clients_stopped_ == 0 || --clients_stopped_ > 0) return;
  spoilt_.add(std::min(stopped_since_, at), at + kCatchUp);
}

std::vector<DeploySlice> DeploySlices::take_until(LineTime settled, std::span<const TimeSpans* const> others) {
  if (clients_stopped_ > 0 && stopped_since_ < settled) spoilt_.add(stopped_since_, settled);
  std::vector<DeploySlice> slices;
  std::vector<float> rates;
  std::vector<float> latencies;
  for (; !open_.empty() && (open_.front().index + 1) * kSpan.count() <= settled.ns(); open_.pop_front()) {
    const Open& open = open_.front();
    rates.clear();
    latencies.clear();
    double log_batch = 0;
    double log_context = 0;
    bool bytes_known = true;
    for (const Sample& sample : open.samples) {
      const bool disturbed = spoilt_.overlaps(sample.a, sample.b) ||
                             std::any_of(others.begin(), others.end(),
                                         [&](const auto* other) { return other->overlaps(sample.a, sample.b); });
      if (disturbed) continue;
      rates.push_back(sample.rate);
      latencies.push_back(sample.itl);
      log_batch += std::log(std::max(1.0F, sample.batch));
      log_context += std::log(std::max(1.0F, sample.context));
      bytes_known = bytes_known && sample.bytes_known && sample.rate > 0;
    }
    const std::size_t count = rates.size();
    if (count * open.stride < kIntervalsMin) continue;
    DeploySlice slice;
    slice.index = open.index;
    slice.log_batch = static_cast<float>(log_batch / static_cast<double>(count));
    slice.log_context = static_cast<float>(log_context / static_cast<double>(count));
    slice.log_itl = std::log(median(latencies));
    slice.bytes_known = bytes_known;
    if (bytes_known) slice.log_rate = std::log(median(rates));
    slices.push_back(slice);
  }
  // An interval reaches back from its slice by no more than a silence is long.
  constexpr Duration kReach = std::chrono::seconds(40);
  decoding_.forget_before(settled - kReach);
  spoilt_.forget_before(settled - kReach);
  return slices;
}

}  // namespace rooflined
