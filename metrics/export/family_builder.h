// Collects samples by MetricId and gives the families in the order of the catalogue, without empty ones and without two
// identical series. Used by one thread for one scrape.

#pragma once

#include "metrics/catalogue.h"
#include "metrics/snapshot.h"

#include <prometheus/metric_family.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::metrics_export {

class FamilyBuilder {
 public:
  using LabelValues = std::initializer_list<std::string_view>;

  FamilyBuilder();

  // Requires: as many values as the catalogue has labels for `id`. A value that is not finite makes no sample.
  void add(MetricId id, LabelValues values, double value);
  // `counts` of one bucket each, the last one for +Inf; missing ones are 0.
  void add_histogram(MetricId id, LabelValues values, std::span<const double> bounds,
                     const HistogramSnapshot& histogram);

  // The builder is empty afterwards.
  std::vector<prometheus::MetricFamily> take();

 private:
  struct Entry {
    prometheus::MetricFamily family;
    std::vector<std::string> label_names;
  };

  prometheus::ClientMetric& append(MetricId id, LabelValues values);

  std::vector<Entry> entries_;  // by MetricId
};

}  // namespace rooflined::metrics_export
