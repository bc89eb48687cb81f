#include "daemon/twin_evidence.h"

#include <algorithm>

namespace rooflined::daemon {
namespace {

// Packets of two interfaces are stamped on two processors.
constexpr Duration kStampJitter = std::chrono::milliseconds(1);
// One frame out of step may be a loss; more are another stream.
constexpr std::size_t kStrayMarksMax = 2;

bool ripe(const TextMark& mark, LineTime now, Duration patience) {
  return now - mark.at >= patience;
}

}  // namespace

void TextTrail::add(std::uint32_t more, LineTime at) {
  characters += more;
  if (more == 0 || marks.size() >= kMarksMax) return;
  marks.push_back(TextMark{characters, at});
}

TwinEvidence compare_trails(const TextTrail& outer, const TextTrail& inner, LineTime now, Duration lag_max,
                            Duration patience) {
  TwinEvidence evidence;
  std::size_t outer_strays = 0;
  std::size_t inner_strays = 0;
  auto mine = outer.marks.begin();
  auto theirs = inner.marks.begin();
  while (mine != outer.marks.end() && theirs != inner.marks.end()) {
    if (mine->characters == theirs->characters) {
      const Duration lag = mine->at - theirs->at;
      const bool near = lag >= -kStampJitter && lag <= lag_max;
      near ? ++evidence.common : (++outer_strays, ++inner_strays);
      ++mine;
      ++theirs;
    } else if (mine->characters < theirs->characters) {
      ++outer_strays;
      ++mine;
    } else {
      ++inner_strays;
      ++theirs;
    }
  }
  evidence.judged = evidence.common + std::min(outer_strays, inner_strays);
  const bool inner_kept_whole = inner.marks.size() < TextTrail::kMarksMax;
  const bool outer_kept_whole = outer.marks.size() < TextTrail::kMarksMax;
  // The outer hop has text that the inner one never had, or the inner one's text never came out.
  const bool ahead =
      mine != outer.marks.end() && inner_kept_whole && (inner.ended || ripe(*mine, now, patience + kStampJitter));
  const bool stuck =
      theirs != inner.marks.end() && outer_kept_whole && (outer.ended || ripe(*theirs, now, patience + lag_max));
  evidence.complete = outer.ended && inner.ended && outer.characters == inner.characters;
  evidence.refuted = ahead || stuck || std::min(outer_strays, inner_strays) > kStrayMarksMax + evidence.common / 4 ||
                     (outer.ended && inner.ended && !evidence.complete);
  return evidence;
}

}  // namespace rooflined::daemon
