#include "daemon/advice_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;

std::string or_dash(const std::optional<double>& value, std::string_view format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string title_of(const FormatMeasurement& measurement) {
  const std::string threads = fmt::format("{} thread{}", measurement.threads, measurement.threads == 1 ? "" : "s");
  return measurement.scale > 0 ? fmt::format("{:g} B parameters, {}", measurement.scale, threads) : threads;
}

// What the table means, a line each.
std::vector<std::string> readings(const FormatAdvice& advice) {
  std::vector<std::string> lines;
  if (advice.ranking.empty()) return lines;
  std::vector<std::string> first, mislabelled;
  for (const RankedFormat& one : advice.ranking) {
    if (one.rank == 1) first.push_back(one.speed.format);
    if (one.mislabelled) mislabelled.push_back(one.speed.format);
  }
  lines.push_back(fmt::format("fastest: {}{}", fmt::join(first, ", "),
                              first.size() > 1 ? " (within 5 %: not reliably ordered)" : ""));
  if (!advice.best_quality.empty()) {
    lines.push_back(fmt::format("of these, lowest perplexity: {}", fmt::join(advice.best_quality, ", ")));
  }
  if (advice.matched) {
    lines.push_back(
        fmt::format("at matched bytes (within 3 %): {}, {:.1f} % apart: that is what the format itself costs",
                    fmt::join(advice.matched->formats, ", "), 100 * advice.matched->spread));
  } else {
    lines.emplace_back("no three formats stream the same bytes within 3 %: size and format cannot be told apart");
  }
  const RankedFormat& worst =
      *std::max_element(advice.ranking.begin(), advice.ranking.end(),
                        [](const RankedFormat& a, const RankedFormat& b) { return a.behind < b.behind; });
  lines.push_back(fmt::format("{} makes {:.0f} % less of the bytes that it streams than the best", worst.speed.format,
                              100 * worst.behind));
  if (!mislabelled.empty()) {
    lines.push_back(
        fmt::format("under 60 % of the bytes are of the type that the label names: {}", fmt::join(mislabelled, ", ")));
  }
  return lines;
}

std::string table_of(const FormatMeasurement& measurement, bool markdown) {
  const FormatAdvice advice = advise_formats(measurement);
  std::string text = fmt::format("{}{}\n\n", markdown ? "## " : "", title_of(measurement));
  constexpr const char* kPlain = "{:>4}  {:<24} {:>10} {:>13} {:>7} {:>11} {:>9}\n";
  constexpr const char* kPiped = "| {} | {} | {} | {} | {} | {} | {} |\n";
  const auto row = [&](auto&&... cells) { text += fmt::format(fmt::runtime(markdown ? kPiped : kPlain), cells...); };
  row("rank", "format", "decode t/s", "streamed MiB", "GB/s", "perplexity", "on label");
  if (markdown) text += "| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const RankedFormat& one : advice.ranking) {
    row(one.rank, one.speed.format, fmt::format("{:.2f}", one.speed.tokens_per_second),
        fmt::format("{:.1f}", one.speed.streamed_mib), fmt::format("{:.2f}", one.bytes_per_second * 1e-9),
        or_dash(one.speed.perplexity, "{:.2f}"), or_dash(one.speed.on_label_percent, "{:.0f} %"));
  }
  text += "\n";
  for (const std::string& line : readings(advice)) text += (markdown ? "- " : "  ") + line + "\n";
  return text + "\n";
}

Json nullable(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json measurement_json(const FormatMeasurement& measurement) {
  const FormatAdvice advice = advise_formats(measurement);
  Json json = {{"parameters_billions", measurement.scale > 0 ? Json(measurement.scale) : Json(nullptr)},
               {"threads", measurement.threads},
               {"formats", Json::array()},
               {"matched_bytes", nullptr},
               {"lowest_perplexity_of_fastest", advice.best_quality}};
  for (const RankedFormat& one : advice.ranking) {
    json["formats"].push_back({{"rank", one.rank},
                               {"format", one.speed.format},
                               {"decode_tokens_per_second", one.speed.tokens_per_second},
                               {"streamed_bytes", one.speed.streamed_mib * 1048576},
                               {"achieved_bytes_per_second", one.bytes_per_second},
                               {"behind", one.behind},
                               {"perplexity", nullable(one.speed.perplexity)},
                               {"on_label_percent", nullable(one.speed.on_label_percent)},
                               {"mislabelled", one.mislabelled}});
  }
  if (advice.matched)
    json["matched_bytes"] = {{"formats", advice.matched->formats}, {"spread", advice.matched->spread}};
  return json;
}

}  // namespace

Json advice_json(const Advice& advice) {
  Json json = {{"core", advice.core},
               {"evidence", advice.evidence},
               {"source", advice.source.empty() ? Json(nullptr) : Json(advice.source)},
               {"measurements", Json::array()},
               {"notes", advice.notes}};
  for (const FormatMeasurement& one : advice.measurements) json["measurements"].push_back(measurement_json(one));
  return json;
}

std::string advice_text(const Advice& advice, bool markdown) {
  std::string text = markdown ? "# Quantisation formats\n\n" : "";
  const char* const end = markdown ? "  \n" : "\n";
  text += fmt::format("core      {}{}evidence  {}{}", advice.core, end, advice.evidence, end);
  if (!advice.source.empty()) text += fmt::format("source    {}{}", advice.source, end);
  text += "\n";
  for (const FormatMeasurement& one : advice.measurements) text += table_of(one, markdown);
  for (const std::string& note : advice.notes) text += note + "\n";
  return text;
}

}  // namespace rooflined::daemon
