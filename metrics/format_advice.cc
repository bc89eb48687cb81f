#include "metrics/format_advice.h"

#include <algorithm>

namespace rooflined {
namespace {

constexpr std::size_t kMatchedMin = 3;
constexpr double kMib = 1024.0 * 1024.0;

std::vector<RankedFormat> rank(std::vector<FormatSpeed> formats) {
  std::stable_sort(formats.begin(), formats.end(), [](const FormatSpeed& a, const FormatSpeed& b) {
    return a.tokens_per_second > b.tokens_per_second;
  });
  std::vector<RankedFormat> ranking;
  double highest = 0;
  double first = 0;  // of the rank
  unsigned place = 0;
  for (FormatSpeed& speed : formats) {
    RankedFormat one;
    if (ranking.empty() || speed.tokens_per_second < (1 - kSpeedTie) * first) {
      place = static_cast<unsigned>(ranking.size()) + 1;
      first = speed.tokens_per_second;
    }
    one.rank = place;
    one.bytes_per_second = speed.tokens_per_second * speed.streamed_mib * kMib;
    one.mislabelled = speed.on_label_percent && *speed.on_label_percent < kOnLabelPercent;
    highest = std::max(highest, one.bytes_per_second);
    one.speed = std::move(speed);
    ranking.push_back(std::move(one));
  }
  for (RankedFormat& one : ranking) one.behind = highest > 0 ? 1 - one.bytes_per_second / highest : 0;
  return ranking;
}

// The largest group whose largest is within 3 % of its smallest; of equally large ones that of the smallest bytes.
std::optional<MatchedBytes> match(const std::vector<RankedFormat>& ranking) {
  std::vector<const FormatSpeed*> group;
  for (const RankedFormat& smallest : ranking) {
    const double low = smallest.speed.streamed_mib;
    std::vector<const FormatSpeed*> candidates;
    for (const RankedFormat& one : ranking) {
      const double size = one.speed.streamed_mib;
      if (size >= low && size <= (1 + kMatchedBytes) * low) candidates.push_back(&one.speed);
    }
    const auto least = [](const std::vector<const FormatSpeed*>& formats) {
      double size = formats.front()->streamed_mib;
      for (const FormatSpeed* one : formats) size = std::min(size, one->streamed_mib);
      return size;
    };
    if (candidates.size() > group.size() || (candidates.size() == group.size() && low < least(group))) {
      group = candidates;
    }
  }
  if (group.size() < kMatchedMin) return std::nullopt;
  MatchedBytes matched;
  for (const FormatSpeed* one : group) matched.formats.push_back(one->format);
  matched.spread = group.front()->tokens_per_second / group.back()->tokens_per_second - 1;
  return matched;
}

}  // namespace

FormatAdvice advise_formats(const FormatMeasurement& measurement) {
  FormatAdvice advice;
  advice.ranking = rank(measurement.formats);
  advice.matched = match(advice.ranking);
  std::optional<double> lowest;
  for (const RankedFormat& one : advice.ranking) {
    if (one.rank == 1 && one.speed.perplexity)
      lowest = std::min(lowest.value_or(*one.speed.perplexity), *one.speed.perplexity);
  }
  for (const RankedFormat& one : advice.ranking) {
    if (one.rank != 1 || !one.speed.perplexity || !lowest) continue;
    if (*one.speed.perplexity <= *lowest + kPerplexityTie) advice.best_quality.push_back(one.speed.format);
  }
  return advice;
}

}  // namespace rooflined
