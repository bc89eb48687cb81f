// Which of a stream's token events begin a new burst (= come from another pass), by the gaps between them alone.
//
// ledger.md "Speculation": a new burst begins at a gap over half the stream's 90th percentile gap. Passes can become
// several times as fast at once (the other sequences have ended; a prefill stalled more than a tenth of the gaps): a
// gap of a tenth of the percentile begins one, too, where the gaps inside bursts are nowhere near it. Percentile and
// mean are exact over the first kHead gaps and follow online after them; who has to be right about the first bursts
// waits for the head to be known. Constant memory. Not thread-safe.

#pragma once

#include "metrics/base/time.h"

#include <array>
#include <cstdint>

namespace rooflined {

class BurstSplitter {
 public:
  static constexpr std::size_t kHead = 16;

  // The gap between a token event and the stream's one before it.
  void learn(Duration gap);
  // True where the event after such a gap begins a burst, as far as the gaps so far tell. Requires: one gap was
  // learned.
  bool begins(Duration gap) const { return static_cast<float>(gap.count()) > threshold_; }
  // The first gaps are known: what begins() says of them stays.
  bool head_known() const { return gaps_ >= kHead; }

 private:
  void learn_head(float gap);

  std::array<float, kHead> head_{};  // ns, ascending
  float quantile_ = 0;               // ns
  float inside_ = 0;                 // mean gap inside bursts, ns
  float threshold_ = 0;              // ns
  std::uint32_t gaps_ = 0;
};

}  // namespace rooflined
