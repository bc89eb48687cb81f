// Whether two exchanges on two hops are one and the same: compares how much text each had borne by when.
//
//   in:   marks of both: characters so far, and when the segment came that completed them
//   out:  how many marks they have in common, and what speaks against it
//
// A hop may put several frames into one segment where the other has several segments, so sizes of segments do not
// compare; sums of characters do. The hop nearer to the engine is asked later and answers earlier. No clock. Threads:
// any, it has no state.

#pragma once

#include "metrics/base/time.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rooflined::daemon {

struct TextMark {
  std::uint64_t characters = 0;  // from the exchange's first frame on, all choices together
  LineTime at;
};

// What a stream has shown so far. Marks beyond kMarksMax are not kept: by then it is decided.
struct TextTrail {
  static constexpr std::size_t kMarksMax = 48;

  std::vector<TextMark> marks;  // ascending
  std::uint64_t characters = 0;
  bool ended = false;

  void add(std::uint32_t more, LineTime at);
};

struct TwinEvidence {
  std::size_t common = 0;
  std::size_t judged = 0;  // marks on the side that has fewer: all of them would be common
  bool refuted = false;
  bool complete = false;  // both have ended with the same amount of text

  // Three marks of four: a hop may cut a segment in two in the middle of a frame.
  bool agrees() const { return !refuted && common > 0 && 4 * common >= 3 * judged; }
};

// `lag_max`: how much later than the inner hop the outer one may show the same text. Marks younger than `patience` are
// not held against anybody: the other hop's packet may still be on its way to us.
TwinEvidence compare_trails(const TextTrail& outer, const TextTrail& inner, LineTime now, Duration lag_max,
                            Duration patience);

}  // namespace rooflined::daemon
