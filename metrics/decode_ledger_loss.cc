// Sequences whose flow lost bytes: on the way to us, not on the way to the client.

#include "metrics/decode_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooflined {
namespace {

// By bytes alone a hole may hold any number of tokens: no sequence is that much faster than it was.
constexpr double kFasterMax = 4;
// The same before its pace is known.
constexpr double kLostMaxUnpaced = 16;
// What was lost is known to half of it, and to two tokens: a total beyond that counts something else.
constexpr double kDoubt = 0.5;
constexpr double kDoubtTokens = 2;

}  // namespace

// It has left decode at its last event, unless the next one shows that it went on. A hole is told of together with what
// comes behind it, so until then the batch is held open like that of any silent sequence.
void DecodeLedger::apply_loss(Sequence& sequence, double tokens) {
  if (!sequence.in_decode) return;
  sequence.lost += tokens;
  sequence.lost_ever += tokens;
  if (std::exchange(sequence.lossy, true)) return;
  sink_.on_exit(DecodeExit::kLoss);
}

// How many tokens were lost in front of this event, which says itself how many it bears.
double DecodeLedger::lost_before(Sequence& sequence, const TokenGroup& event) {
  sequence.lossy = false;
  double lost = std::round(std::exchange(sequence.lost, 0.0));
  if (!sequence.in_decode) return 0;
  // A counter on the frame has counted them.
  if (event.source == TokenSource::kExactLive) lost -= std::max(0.0, event.tokens - event.frames);
  const double borne = sequence.counted - sequence.first_tokens;
  const double seconds = to_seconds(sequence.last - sequence.first);
  const double most =
      borne > 0 && seconds > 0 ? kFasterMax * to_seconds(event.at - sequence.last) * borne / seconds : kLostMaxUnpaced;
  return std::clamp(lost, 0.0, std::floor(most));
}

// Whether a total is in keeping with what was seen and what was lost; without a loss it is.
bool DecodeLedger::total_fits(const Sequence& sequence) {
  if (sequence.lost_ever == 0) return true;
  const double missing = static_cast<double>(*sequence.known.tokens) - sequence.counted - sequence.lost;
  return std::fabs(missing) <= kDoubtTokens + kDoubt * sequence.lost_ever;
}

}  // namespace rooflined
