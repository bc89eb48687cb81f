#include "metrics/export/page.h"

#include "metrics/base/utf8.h"
#include "metrics/export/scrape.h"

#include <fmt/format.h>

#include <algorithm>

namespace rooflined::metrics_export {

namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em;color:#222;background:#fff}"
    "table{border-collapse:collapse}th,td{padding:.3em .8em;border-bottom:1px solid #ccc;text-align:right}"
    "th:first-child,td:first-child,td.text,th.text{text-align:left}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8bf}}";
constexpr std::string_view kAbsent = "–";

std::string escaped(std::string_view raw) {
  std::string out;
  for (const char c : to_label(raw)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string number(const std::optional<double>& value, int decimals, double scale = 1) {
  return value ? fmt::format("{:.{}f}", *value * scale, decimals) : std::string(kAbsent);
}

bool has_caveat(const TargetSnapshot& target, std::string_view reason) {
  return std::find(target.caveats.begin(), target.caveats.end(), reason) != target.caveats.end();
}

std::string mbu_text(const WindowSnapshot& window, const TargetSnapshot& target) {
  if (!window.mbu_ratio) return std::string(kAbsent);
  const bool cached = has_caveat(target, "cache_assisted");
  if (*window.mbu_ratio > 1 && cached) return "partly served from cache";
  if (*window.mbu_ratio > 1 || target.ceiling_exceeded) return "at or above the measured ceiling";
  return fmt::format("{:.1f} %{}", *window.mbu_ratio * 100, cached ? ", partly served from cache" : "");
}

std::string target_row(const std::string& name, const TargetSnapshot& target, bool capture_up) {
  std::string row = fmt::format("<tr><td>{}</td><td class=text>{}</td>", escaped(name), escaped(target.model));
  if (!target.up || !capture_up || target.windows.empty()) {
    return row + fmt::format("<td colspan=6 class=text>{}</td></tr>\n", target.up ? "no figures yet" : "gone");
  }
  const WindowSnapshot& window = target.windows.front();
  std::string caveats;
  for (const std::string& reason : target.caveats) caveats += (caveats.empty() ? "" : ", ") + escaped(reason);
  const auto itl = window.itl_seconds ? std::optional<double>(window.itl_seconds->mean) : std::nullopt;
  row += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=text>{}</td></tr>\n",
                     number(window.tokens_per_second, 1), number(itl, 1, 1e3), number(window.batch_size, 2),
                     number(window.context_tokens, 0), mbu_text(window, target), caveats);
  return row;
}

std::string ceiling_line(const Snapshot& snapshot) {
  if (!snapshot.ceiling) return "<p>No ceiling is adopted yet: MBU is absent until one is.</p>\n";
  const CeilingSnapshot& ceiling = *snapshot.ceiling;
  return fmt::format("<p>Ceiling {:.1f} GB/s, {}{}{}.</p>\n", ceiling.bytes_per_second * 1e-9, escaped(ceiling.source),
                     ceiling.stale ? ", stale" : "",
                     ceiling.suspect ? ", waiting for a second measurement that agrees" : "");
}

std::string table(const Snapshot& snapshot) {
  if (snapshot.targets.empty()) {
    return "<p>No inference server was seen yet. A target appears with its first recognised exchange.</p>\n";
  }
  const bool up = capture_is_up(snapshot);
  const auto names = target_labels(snapshot);
  std::string window;
  for (const TargetSnapshot& target : snapshot.targets) {
    if (window.empty() && !target.windows.empty()) window = escaped(target.windows.front().window);
  }
  std::string text = fmt::format(
      "<table><tr><th>target</th><th class=text>model</th><th>tokens/s</th><th>ITL, ms</th><th>batch</th>"
      "<th>context</th><th>MBU</th><th class=text>caveats</th></tr>\n");
  for (std::size_t i = 0; i < snapshot.targets.size(); ++i) text += target_row(names[i], snapshot.targets[i], up);
  text += "</table>\n";
  if (!window.empty()) text += fmt::format("<p>Means over the last {}.</p>\n", window);
  if (!up) text += "<p>The capture is down: nothing is seen.</p>\n";
  return text;
}

}  // namespace

std::string status_page(const Snapshot* snapshot, std::string_view version) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta http-equiv=refresh content=5>"
      "<meta name=viewport content=\"width=device-width\"><title>rooflined</title><style>{}</style></head><body>\n"
      "<h1>rooflined</h1>\n",
      kStyle);
  text += snapshot == nullptr ? "<p>Starting.</p>\n" : table(*snapshot) + ceiling_line(*snapshot);
  text += fmt::format(
      "<p><a href=\"/metrics\">/metrics</a> · <a href=\"/api/v1/state\">/api/v1/state</a> · "
      "<a href=\"/healthz\">/healthz</a> · <a href=\"/readyz\">/readyz</a> · version {}</p>\n</body></html>\n",
      escaped(version));
  return text;
}

}  // namespace rooflined::metrics_export
