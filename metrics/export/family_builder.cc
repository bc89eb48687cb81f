#include "metrics/export/family_builder.h"

#include "metrics/base/result.h"
#include "metrics/base/utf8.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooflined::metrics_export {

namespace {

prometheus::MetricType library_type(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

std::vector<std::string> split_names(std::string_view labels) {
  std::vector<std::string> names;
  while (!labels.empty()) {
    const std::string_view label = labels.substr(0, labels.find(','));
    labels.remove_prefix(label.size() < labels.size() ? label.size() + 1 : labels.size());
    names.emplace_back(label.substr(0, label.find('=')));
  }
  return names;
}

void add_up(prometheus::ClientMetric& sum, const prometheus::ClientMetric& other) {
  sum.counter.value += other.counter.value;
  sum.histogram.sample_count += other.histogram.sample_count;
  sum.histogram.sample_sum += other.histogram.sample_sum;
  for (std::size_t i = 0; i < std::min(sum.histogram.bucket.size(), other.histogram.bucket.size()); ++i) {
    sum.histogram.bucket[i].cumulative_count += other.histogram.bucket[i].cumulative_count;
  }
}

// Two identical series make Prometheus refuse the whole scrape. Keeps the order of what stays.
void merge_duplicates(std::vector<prometheus::ClientMetric>& metrics) {
  std::vector<std::size_t> order(metrics.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&metrics](std::size_t a, std::size_t b) {
    if (metrics[a].label == metrics[b].label) return a < b;
    return metrics[a].label < metrics[b].label;
  });
  std::vector<bool> duplicate(metrics.size(), false);
  std::size_t first = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (metrics[order[first]].label == metrics[order[i]].label) {
      add_up(metrics[order[first]], metrics[order[i]]);
      duplicate[order[i]] = true;
    } else {
      first = i;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (duplicate[i]) continue;
    if (kept != i) metrics[kept] = std::move(metrics[i]);
    ++kept;
  }
  metrics.resize(kept);
}

}  // namespace

FamilyBuilder::FamilyBuilder() {
  entries_.reserve(metric_catalogue().size());
  for (const MetricInfo& info : metric_catalogue()) {
    Entry entry;
    entry.family.name = info.name;
    entry.family.help = info.help;
    entry.family.type = library_type(info.type);
    entry.label_names = split_names(info.labels);
    entries_.push_back(std::move(entry));
  }
}

prometheus::ClientMetric& FamilyBuilder::append(MetricId id, LabelValues values) {
  Entry& entry = entries_[static_cast<std::size_t>(id)];
  ROOFLINED_CHECK(values.size() == entry.label_names.size());
  prometheus::ClientMetric& metric = entry.family.metric.emplace_back();
  metric.label.reserve(values.size());
  std::size_t at = 0;
  for (const std::string_view value : values) metric.label.push_back({entry.label_names[at++], to_label(value)});
  return metric;
}

void FamilyBuilder::add(MetricId id, LabelValues values, double value) {
  if (!std::isfinite(value)) return;
  prometheus::ClientMetric& metric = append(id, values);
  if (metric_info(id).type == MetricType::kCounter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void FamilyBuilder::add_histogram(MetricId id, LabelValues values, std::span<const double> bounds,
                                  const HistogramSnapshot& histogram) {
  prometheus::ClientMetric::Histogram& out = append(id, values).histogram;
  out.sample_sum = std::isfinite(histogram.sum) ? histogram.sum : 0;
  out.bucket.reserve(bounds.size());
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (i < histogram.bucket_counts.size()) cumulative += histogram.bucket_counts[i];
    out.bucket.push_back({cumulative, bounds[i]});
  }
  if (bounds.size() < histogram.bucket_counts.size()) cumulative += histogram.bucket_counts[bounds.size()];
  // The +Inf bucket is the sample count; taken from the buckets, they cannot contradict each other.
  out.sample_count = cumulative;
}

std::vector<prometheus::MetricFamily> FamilyBuilder::take() {
  std::vector<prometheus::MetricFamily> families;
  for (Entry& entry : entries_) {
    if (entry.family.metric.empty()) continue;
    merge_duplicates(entry.family.metric);
    families.push_back(std::exchange(entry.family, {}));
  }
  entries_.clear();
  return families;
}

}  // namespace rooflined::metrics_export
