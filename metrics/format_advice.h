// Which quantisation format is fastest, as far as measurements of one core at one thread count and one model scale
// tell.
//
// One table per measurement, nothing averaged over them. Speeds closer than what the measurement tells apart share a
// rank. What the format itself costs is read among formats that stream the same bytes. Absent is not zero. Pure;
// threads: any.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rooflined {

struct FormatSpeed {
  std::string format;
  double tokens_per_second = 0;
  double streamed_mib = 0;
  std::optional<double> perplexity;
  std::optional<double> on_label_percent;  // of the repeating layers' bytes, in the type that the label names
};

struct FormatMeasurement {
  double scale = 0;  // billions of parameters; 0: not of a published scale
  unsigned threads = 0;
  std::vector<FormatSpeed> formats;
};

struct RankedFormat {
  FormatSpeed speed;
  unsigned rank = 0;            // equal ones are within 5 % of the first of them
  double bytes_per_second = 0;  // streamed bytes × tokens/s
  double behind = 0;            // of the highest such rate in the table: 0.16 is 16 % less
  bool mislabelled = false;     // under 60 % of the bytes are what the label says
};

// Formats that stream within 3 % of the same bytes, at least three: the only comparison that isolates the format.
struct MatchedBytes {
  std::vector<std::string> formats;  // fastest first
  double spread = 0;                 // fastest over slowest, less one
};

struct FormatAdvice {
  std::vector<RankedFormat> ranking;
  std::optional<MatchedBytes> matched;
  // Of the first rank, those within 0.05 of its lowest perplexity; empty where none was measured.
  std::vector<std::string> best_quality;
};

inline constexpr double kSpeedTie = 0.05;
inline constexpr double kPerplexityTie = 0.05;
inline constexpr double kMatchedBytes = 0.03;
inline constexpr double kOnLabelPercent = 60;

FormatAdvice advise_formats(const FormatMeasurement& measurement);

}  // namespace rooflined
