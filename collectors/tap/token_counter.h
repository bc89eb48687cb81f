// Turns what frames say about one sequence into tokens, with how surely that is known. The same for every dialect.
//
// In order of trust (wire-formats §1.1): the difference of the server's cumulative count, the length of an id or
// logprob list, one token for a frame with text. A count that appears on the finishing frame only is a total, not a
// live counter: it goes into the totals at the end. Thread: one; no allocation.

#pragma once

#include "collectors/tap/dialect_facts.h"
#include "metrics/base/time.h"
#include "metrics/exchange.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rooflined::tap {

// More tokens than any sequence has: totals above it are not believed.
constexpr std::uint64_t kSequenceTokensMax = 1'000'000'000;

struct CountedTokens {
  std::uint32_t tokens = 0;
  TokenSource source = TokenSource::kEstimated;
  bool implausible = false;  // a counter jumped too far and was not believed
};

class TokenCounter {
 public:
  struct Context {
    // The first tokens were not seen: the counter's first value tells nothing about the frame that bears it.
    bool joined_late = false;
    // Frames with logprobs alone repeat the whole answer (KoboldCpp sends one before its finish frame).
    bool lists_repeat = false;
    // The list on the first frame holds the prompt's tokens too (`echo`).
    bool first_list_has_prompt = false;
    // A frame whose text is empty bears a token all the same: this server sends none without.
    bool empty_text_is_token = false;
  };

  CountedTokens count(const ChoiceFacts& facts, const Context& context);

  std::uint64_t counted() const noexcept { return counted_; }
  // The server's own count, where it is one of the whole sequence: its latest value.
  std::optional<std::uint64_t> cumulative() const noexcept { return cumulative_; }

 private:
  CountedTokens guess(const ChoiceFacts& facts, const Context& context) const;

  std::uint64_t counted_ = 0;
  // What the counter showed when this sequence was joined: tokens that nobody saw.
  std::uint64_t unseen_ = 0;
  std::optional<std::uint64_t> cumulative_;
  bool live_ = false;
  std::uint32_t frames_without_growth_ = 0;
};

// Shares `total` among sequences of which `counted` tokens each were seen: everyone keeps the seen ones' proportion,
// and the sum is exact (largest remainder). Without any seen tokens all get the same. Requires: `counted` and `shares`
// of one size.
void apportion(std::uint64_t total, std::span<const std::uint64_t> counted, std::span<std::uint64_t> shares);

}  // namespace rooflined::tap
