// Prints the table of metrics as Markdown: what README.md shows, and what a test compares it with.

#include "metrics/catalogue.h"

#include <cstdio>
#include <string>

namespace {

// "target,outcome=ok|error" → "`target`, `outcome`=ok\|error": a bare bar would end the cell.
std::string labels_cell(std::string_view labels) {
  std::string cell;
  while (!labels.empty()) {
    const std::string_view label = labels.substr(0, labels.find(','));
    labels.remove_prefix(label.size() < labels.size() ? label.size() + 1 : labels.size());
    const std::string_view name = label.substr(0, label.find('='));
    if (!cell.empty()) cell += ", ";
    cell += "`" + std::string(name) + "`";
    for (const char c : label.substr(name.size())) {
      if (c == '|') cell += '\\';
      cell += c;
    }
  }
  return cell;
}

}  // namespace

int main() {
  std::puts("| metric | meaning | type | unit | labels | absent when |\n| --- | --- | --- | --- | --- | --- |");
  for (const rooflined::MetricInfo& metric : rooflined::metric_catalogue()) {
    std::printf("| `%s` | %s | %s | %s | %s | %s |\n", std::string(metric.name).c_str(),
                std::string(metric.help).c_str(), std::string(metric_type_name(metric.type)).c_str(),
                std::string(metric.unit).c_str(), labels_cell(metric.labels).c_str(),
                std::string(metric.absent).c_str());
  }
  return 0;
}
