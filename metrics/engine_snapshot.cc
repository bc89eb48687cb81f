// What a scrape shows of one engine: the formulas of design.md §3 over counters and windows.

#include "metrics/engine_books.h"

#include <algorithm>

namespace rooflined {
namespace {

// ledger.md: over a tenth of the window's segments held several frames; over 5 % of its tokens are estimates.
constexpr double kMergedShareMax = 0.1;
constexpr double kEstimatedShareMax = 0.05;
// A rate of bytes is absent where more of the decode was before the geometry was known: it would read low.
constexpr double kUnbilledShareMax = 0.05;

}  // namespace

WindowSnapshot EngineBooks::window_snapshot(const WindowSpan& span, std::optional<BytesPerSecond> bandwidth) const {
  const RollingWindow::View view = window_.view(ledger_.settled_until(), span.span, began_);
  const WindowSums& sums = view.sums;
  const double replicas = options_.ledger.replicas;
  WindowSnapshot snapshot;
  snapshot.window = span.name;
  snapshot.tokens_per_second = std::max(0.0, sums.output_tokens) / view.seconds;
  snapshot.decode_busy_ratio = sums.busy_seconds / replicas / view.seconds;
  const double unbilled = sums.busy_seconds - sums.billed_busy_seconds;
  if (geometry_ != nullptr && unbilled <= kUnbilledShareMax * sums.busy_seconds) {
    snapshot.decode_bytes_per_second = std::max(0.0, sums.bytes) / view.seconds;
    if (bandwidth) snapshot.decode_bandwidth_ratio = *snapshot.decode_bytes_per_second / *bandwidth;
  }
  if (sums.busy_seconds <= 0 || sums.decode_tokens <= 0) return snapshot;
  snapshot.batch_size = sums.sequence_seconds / sums.busy_seconds;
  snapshot.context_tokens = sums.context / sums.decode_tokens;
  if (view.latencies.weight() > 0) {
    // τ from the sums, so that late totals count; the quantiles are of the events as they came.
    snapshot.itl_seconds = LatencyQuantiles{sums.sequence_seconds / sums.decode_tokens, view.latencies.quantile(0.50),
                                            view.latencies.quantile(0.95), view.latencies.quantile(0.99)};
  }
  if (bandwidth && sums.billed_busy_seconds > 0 && sums.bytes > 0) {
    snapshot.mbu_ratio = sums.bytes / (sums.billed_busy_seconds / replicas * *bandwidth);
    snapshot.tokens_per_second_bound = sums.billed_decode_tokens * *bandwidth / sums.bytes;
  }
  return snapshot;
}

std::optional<BytesPerSecond> EngineBooks::decode_rate(Duration span) const {
  const RollingWindow::View view = window_.view(ledger_.settled_until(), span, began_);
  if (geometry_ == nullptr || view.seconds < to_seconds(span)) return std::nullopt;
  return std::max(0.0, view.sums.bytes) / view.seconds;
}

std::vector<std::string> EngineBooks::caveats() const {
  std::vector<std::string> reasons;
  if (options_.windows.empty()) return reasons;
  const auto shortest = std::min_element(options_.windows.begin(), options_.windows.end(),
                                         [](const WindowSpan& a, const WindowSpan& b) { return a.span < b.span; });
  const RollingWindow::View view = window_.view(ledger_.settled_until(), shortest->span, began_);
  const WindowSums& sums = view.sums;
  if (geometry_ != nullptr && !geometry_->kv_known) reasons.emplace_back("geometry_partial");
  if (geometry_ != nullptr && geometry_->converted) reasons.emplace_back("converted");
  if (ledger_.speculates() && !ledger_.counts_drafts()) reasons.emplace_back("speculation");
  if (sums.estimated_tokens > kEstimatedShareMax * sums.output_tokens) reasons.emplace_back("estimated_tokens");
  if (sums.merged_segments > kMergedShareMax * sums.segments) reasons.emplace_back("merged_frames");
  if (view.lossy) reasons.emplace_back("lossy");
  return reasons;
}

TargetSnapshot EngineBooks::snapshot(std::optional<BytesPerSecond> bandwidth) const {
  TargetSnapshot snapshot;
  snapshot.output_tokens = output_tokens_.value();
  snapshot.prompt_tokens = prompt_tokens_.value();
  snapshot.decode_tokens = decode_tokens_.value();
  snapshot.decode_passes = passes_.value();
  snapshot.decode_sequence_seconds = sequence_seconds_.value();
  snapshot.decode_busy_seconds = busy_seconds_.value();
  snapshot.decode_prefill_overlap_seconds = overlap_seconds_.value();
  snapshot.decode_bytes_dense = bytes_dense_.value();
  snapshot.decode_bytes_experts = bytes_experts_.value();
  snapshot.decode_bytes_kv = bytes_kv_.value();
  snapshot.requests = requests_;
  for (std::size_t i = 0; i < tokens_by_source_.size(); ++i)
    snapshot.tokens_by_source[i] = tokens_by_source_[i].value();
  snapshot.inter_token_latency = inter_token_latency_.data();
  snapshot.inter_event_latency = inter_event_latency_.data();
  snapshot.time_to_first_token = time_to_first_token_.data();
  snapshot.request_duration = request_duration_.data();
  snapshot.decode_exits = decode_exits_;
  snapshot.active_sequences = ledger_.sequences_in_decode();
  snapshot.exchanges_in_flight = exchanges_.size();
  snapshot.token_estimate_error = answer_estimate_.error();
  snapshot.bandwidth = bandwidth;
  if (geometry_ != nullptr) {
    snapshot.geometry = GeometrySnapshot{geometry_->architecture, geometry_->source, geometry_->dense_bytes, 0,
                                         geometry_->kv_bytes_per_token()};
    for (const ExpertGroup& group : geometry_->expert_groups) {
      snapshot.geometry->expert_bytes_total +=
          static_cast<double>(group.layers) * static_cast<double>(group.experts) * group.bytes_per_expert;
    }
  }
  const auto has_passed = [this](const WindowSpan& span) {
    return window_.view(ledger_.settled_until(), span.span, began_).seconds > 0;
  };
  for (const WindowSpan& span : options_.windows) {
    if (!has_passed(span)) continue;
    snapshot.windows.push_back(window_snapshot(span, bandwidth));
    const auto mbu = snapshot.windows.back().mbu_ratio;
    snapshot.ceiling_exceeded = snapshot.ceiling_exceeded || (mbu && *mbu > 1);
  }
  if (options_.live && has_passed(*options_.live)) snapshot.live = window_snapshot(*options_.live, bandwidth);
  snapshot.caveats = caveats();
  return snapshot;
}

EngineBooks::Settled EngineBooks::settled() const {
  Settled settled;
  settled.output_tokens = output_tokens_.settled();
  settled.prompt_tokens = prompt_tokens_.settled();
  settled.decode_tokens = decode_tokens_.settled();
  settled.passes = passes_.settled();
  settled.sequence_seconds = sequence_seconds_.settled();
  settled.busy_seconds = busy_seconds_.settled();
  settled.bytes_dense = bytes_dense_.settled();
  settled.bytes_experts = bytes_experts_.settled();
  settled.bytes_kv = bytes_kv_.settled();
  settled.context_sum = context_sum_;
  settled.bytes_known = geometry_ != nullptr;
  settled.billed_busy_seconds = billed_busy_seconds_;
  for (std::size_t i = 0; i < tokens_by_source_.size(); ++i) {
    settled.tokens_by_source[i] = tokens_by_source_[i].settled();
  }
  return settled;
}

}  // namespace rooflined
