// What a daemon's /metrics say about one target between two moments: the difference of its counters.
//
//   in:   two scrapes (Prometheus text)
//   out:  MBU, batch, context, tokens per second
//
// Thread rule: pure functions, but for read_daemon(), which blocks.

#pragma once

#include "metrics/base/result.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::simulator {

// Sums over models and components of one target.
struct DaemonCounters {
  double bytes = 0;
  double busy_seconds = 0;
  double sequence_seconds = 0;
  double decode_tokens = 0;
  double output_tokens = 0;
  double bandwidth = 0;  // the target's denominator; 0: unknown
};

// By target.
using DaemonScrape = std::map<std::string, DaemonCounters>;

DaemonScrape parse_scrape(std::string_view text);
// `url` is the daemon's: http://HOST:PORT.
Result<DaemonScrape> read_daemon(const std::string& url);

struct DaemonFigures {
  std::string target;
  std::optional<double> mbu;
  std::optional<double> batch;
  std::optional<double> itl_seconds;
  double tokens_per_second = 0;
};

// Of the target by that name, or of the one that bore most tokens. nullopt where there is none.
std::optional<DaemonFigures> daemon_figures(const DaemonScrape& before, const DaemonScrape& after, double seconds,
                                            const std::string& target, double replicas);

}  // namespace rooflined::simulator
