#include "daemon/format_matrix.h"

#include <algorithm>
#include <array>
#include <string>

namespace rooflined::daemon {
namespace {

struct Published {
  double scale;
  unsigned threads;
  FormatSpeed speed;
};

// Scale, threads; format, tokens/s, streamed MiB, perplexity, percent of the repeating layers in the label's type.
// clang-format off
const std::array<Published, 34> kPublished = {{
    {0.5, 2, {"Q4_0", 34.661, 330.2, 21.7077, 100.0}},
    {0.5, 2, {"IQ4_XS", 34.234, 329.5, 20.698, 24.2}},
    {0.5, 2, {"IQ4_NL", 34.231, 332.2, 20.6971, 94.6}},
    {0.5, 2, {"Q3_K_M", 33.347, 333.3, 21.0356, 0.0}},
    {0.5, 2, {"Q2_K", 31.797, 317.2, 21.8327, 0.0}},
    {0.5, 2, {"Q4_K_M", 25.675, 373.7, 20.118, 11.9}},
    {0.5, 2, {"Q6_K", 23.394, 476.6, 19.5191, 24.2}},
    {0.5, 2, {"Q8_0", 22.225, 500.8, 19.5185, 100.0}},
    {0.5, 3, {"Q4_0", 31.214, 330.2, 21.7077, 100.0}},
    {0.5, 3, {"IQ4_NL", 30.981, 332.2, 20.6971, 94.6}},
    {0.5, 3, {"Q2_K", 30.635, 317.2, 21.8327, 0.0}},
    {0.5, 3, {"IQ4_XS", 30.469, 329.5, 20.698, 24.2}},
    {0.5, 3, {"Q3_K_M", 30.365, 333.3, 21.0356, 0.0}},
    {0.5, 3, {"Q4_K_M", 27.57, 373.7, 20.118, 11.9}},
    {0.5, 3, {"Q6_K", 20.598, 476.6, 19.5191, 24.2}},
    {0.5, 3, {"Q8_0", 18.874, 500.8, 19.5185, 100.0}},
    {0.5, 4, {"Q2_K", 30.849, 317.2, 21.8327, 0.0}},
    {0.5, 4, {"Q4_0", 29.852, 330.2, 21.7077, 100.0}},
    {0.5, 4, {"IQ4_NL", 29.673, 332.2, 20.6971, 94.6}},
    {0.5, 4, {"Q3_K_M", 29.228, 333.3, 21.0356, 0.0}},
    {0.5, 4, {"IQ4_XS", 28.973, 329.5, 20.698, 24.2}},
    {0.5, 4, {"Q4_K_M", 26.07, 373.7, 20.118, 11.9}},
    {0.5, 4, {"Q6_K", 19.416, 476.6, 19.5191, 24.2}},
    {0.5, 4, {"Q8_0", 17.273, 500.8, 19.5185, 100.0}},
    {1.5, 2, {"IQ4_XS", 13.324, 854.7, {}, 94.9}},
    {1.5, 2, {"IQ4_NL", 12.072, 892.2, {}, 95.2}},
    {1.5, 2, {"Q4_0", 12.03, 886.0, {}, 100.0}},
    {1.5, 2, {"Q4_K_M", 11.191, 934.7, {}, 79.4}},
    {1.5, 2, {"Q3_K_M", 10.015, 780.3, {}, 58.2}},
    {1.5, 4, {"Q3_K_M", 12.396, 780.3, {}, 58.2}},
    {1.5, 4, {"IQ4_XS", 12.188, 854.7, {}, 94.9}},
    {1.5, 4, {"Q4_0", 9.366, 886.0, {}, 100.0}},
    {1.5, 4, {"IQ4_NL", 9.308, 892.2, {}, 95.2}},
    {1.5, 4, {"Q4_K_M", 8.222, 934.7, {}, 79.4}},
}};
// clang-format on

}  // namespace

std::vector<FormatMeasurement> published_formats() {
  std::vector<FormatMeasurement> all;
  for (const Published& row : kPublished) {
    auto into = std::find_if(all.begin(), all.end(), [&row](const FormatMeasurement& one) {
      return std::to_string(one.scale) == std::to_string(row.scale) && one.threads == row.threads;
    });
    if (into == all.end()) into = all.insert(all.end(), FormatMeasurement{row.scale, row.threads, {}});
    into->formats.push_back(row.speed);
  }
  return all;
}

}  // namespace rooflined::daemon
