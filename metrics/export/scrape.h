// Turns a snapshot into Prometheus metric families and text. A pure function of its input: no clock, no files.
//
//   absent, not zero   an optional without a value, a target that is gone, a capture that is down and a number that is
//   not
//                      finite make no series
//   safe labels        valid UTF-8, bounded (to_label); two targets whose names become equal get "-2", "-3", …
//   no duplicates      series that would still be identical are merged: counters and histograms add up, of gauges the
//                      first one stays
//
// The size is bounded by the snapshot's. Thread rule: any; exceptions of the library end here.

#pragma once

#include "metrics/export/process_stats.h"
#include "metrics/snapshot.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::metrics_export {

// The newest snapshot, or null while there is none. shared_ptr: a scrape keeps its snapshot while newer ones are
// published.
using SnapshotSource = std::function<std::shared_ptr<const Snapshot>()>;

// Connections to the endpoint that were closed on a limit, by reason.
struct WebCounters {
  std::uint64_t timeout = 0;
  std::uint64_t limit = 0;
  std::uint64_t too_large = 0;
};

// What a scrape shows beside the snapshot.
struct ScrapeExtras {
  std::string version;
  ProcessStats process;
  WebCounters web;
};

// False once a collector named "tap" says that it is down.
bool capture_is_up(const Snapshot& snapshot);

// The name of each target, in order, as its label: safe, and unique within the snapshot.
std::vector<std::string> target_labels(const Snapshot& snapshot);

// `snapshot` may be null: then only what does not come from it.
std::vector<prometheus::MetricFamily> metric_families(const Snapshot* snapshot, const ScrapeExtras& extras);

// Content type of prometheus_text().
inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

// Text format 0.0.4; empty when the library failed (which is logged).
std::string prometheus_text(const std::vector<prometheus::MetricFamily>& families);

// For a registry of prometheus-cpp: the newest snapshot as families at each collection.
class SnapshotCollectable : public prometheus::Collectable {
 public:
  SnapshotCollectable(SnapshotSource source, std::function<ScrapeExtras()> extras)
      : source_(std::move(source)), extras_(std::move(extras)) {}

  std::vector<prometheus::MetricFamily> Collect() const override { return metric_families(source_().get(), extras_()); }

 private:
  SnapshotSource source_;
  std::function<ScrapeExtras()> extras_;
};

}  // namespace rooflined::metrics_export
