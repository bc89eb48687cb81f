#include "tests/simulator/daemon_view.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace rooflined::simulator {
namespace {

struct Series {
  std::string_view name;
  double DaemonCounters::*sum;
};
constexpr std::array<Series, 6> kSeries = {{
    {"rooflined_decode_bytes_total", &DaemonCounters::bytes},
    {"rooflined_decode_busy_seconds_total", &DaemonCounters::busy_seconds},
    {"rooflined_decode_sequence_seconds_total", &DaemonCounters::sequence_seconds},
    {"rooflined_decode_tokens_total", &DaemonCounters::decode_tokens},
    {"rooflined_output_tokens_total", &DaemonCounters::output_tokens},
    {"rooflined_target_bandwidth_bytes_per_second", &DaemonCounters::bandwidth},
}};

std::string target_of(std::string_view labels) {
  constexpr std::string_view kLabel = "target=\"";
  const std::size_t at = labels.find(kLabel);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = labels.substr(at + kLabel.size());
  return std::string(rest.substr(0, rest.find('"')));
}

// NAME{LABELS} VALUE
void read_line(std::string_view line, DaemonScrape& scrape) {
  const std::size_t open = line.find('{');
  const std::size_t close = line.rfind("} ");
  if (line.starts_with('#') || open == std::string_view::npos || close == std::string_view::npos || close < open)
    return;
  for (const Series& series : kSeries) {
    if (line.substr(0, open) != series.name) continue;
    const std::string value(line.substr(close + 2));
    scrape[target_of(line.substr(open, close - open))].*series.sum += std::strtod(value.c_str(), nullptr);
  }
}

std::optional<double> ratio(double numerator, double denominator) {
  if (denominator <= 0) return std::nullopt;
  return numerator / denominator;
}

}  // namespace

DaemonScrape parse_scrape(std::string_view text) {
  DaemonScrape scrape;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    read_line(text.substr(0, end), scrape);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return scrape;
}

Result<DaemonScrape> read_daemon(const std::string& url) {
  httplib::Client client(url);
  const httplib::Result answer = client.Get("/metrics");
  if (!answer) return Error{ErrorCode::kIo, "--rooflined " + url, httplib::to_string(answer.error())};
  if (answer->status != 200) {
    return Error{ErrorCode::kIo, "--rooflined " + url, "HTTP status " + std::to_string(answer->status)};
  }
  return parse_scrape(answer->body);
}

std::optional<DaemonFigures> daemon_figures(const DaemonScrape& before, const DaemonScrape& after, double seconds,
                                            const std::string& target, double replicas) {
  std::optional<DaemonFigures> best;
  double tokens_most = 0;
  for (const auto& [name, now] : after) {
    if (!target.empty() && name != target) continue;
    const auto earlier = before.find(name);
    const DaemonCounters then = earlier == before.end() ? DaemonCounters{} : earlier->second;
    const double tokens = now.output_tokens - then.output_tokens;
    if (tokens <= tokens_most) continue;
    tokens_most = tokens;
    const double busy = now.busy_seconds - then.busy_seconds;
    const double sequence = now.sequence_seconds - then.sequence_seconds;
    best = DaemonFigures{name, ratio(now.bytes - then.bytes, busy / replicas * now.bandwidth), ratio(sequence, busy),
                         ratio(sequence, now.decode_tokens - then.decode_tokens), tokens / seconds};
  }
  return best;
}

}  // namespace rooflined::simulator
