#include "collectors/tap/token_counter.h"

#include <algorithm>
#include <numeric>

namespace rooflined::tap {
namespace {

// No server makes this many tokens between two frames; a larger jump is a broken or hostile counter.
constexpr std::uint64_t kTokensPerFrameMax = 1'000'000;

// One engine output may become a few frames (reasoning, answer, tool call) that share one count. A counter that stands
// still for longer while text comes is not kept up to date.
constexpr std::uint32_t kFramesWithoutGrowthMax = 8;

}  // namespace

CountedTokens TokenCounter::guess(const ChoiceFacts& facts, const Context& context) const {
  std::uint32_t list = std::max(facts.ids, facts.logprobs);
  if (context.lists_repeat && !facts.has_text) list = 0;
  if (context.first_list_has_prompt && counted_ == 0 && list > 1) list = 1;
  if (list > kTokensPerFrameMax) return {.implausible = true};
  if (list != 0) return {.tokens = list, .source = TokenSource::kExactLive};
  const bool token = facts.has_text || (facts.empty_text && context.empty_text_is_token);
  return {.tokens = token ? 1U : 0U, .source = TokenSource::kEstimated};
}

CountedTokens TokenCounter::count(const ChoiceFacts& facts, const Context& context) {
  CountedTokens result = guess(facts, context);
  if (facts.cumulative) {
    const std::uint64_t value = *facts.cumulative;
    if (!live_ && !facts.finished) {
      live_ = true;
      if (context.joined_late && value > counted_ + result.tokens) unseen_ = value - counted_ - result.tokens;
    }
    const std::uint64_t known = unseen_ + counted_;
    const std::uint64_t growth = value > known ? value - known : 0;
    if (growth > kTokensPerFrameMax && live_) {
      result.implausible = true;
    } else {
      const bool grew = !cumulative_ || value > *cumulative_;
      cumulative_ = std::max(cumulative_.value_or(0), value);
      frames_without_growth_ = grew ? 0 : frames_without_growth_ + (facts.has_text ? 1U : 0U);
      if (live_ && frames_without_growth_ <= kFramesWithoutGrowthMax) {
        result = {.tokens = static_cast<std::uint32_t>(growth), .source = TokenSource::kExactLive};
      }
    }
  }
  counted_ += result.tokens;
  return result;
}

void apportion(std::uint64_t total, std::span<const std::uint64_t> counted, std::span<std::uint64_t> shares) {
  const std::uint64_t sum = std::accumulate(counted.begin(), counted.end(), std::uint64_t{0});
  struct Remainder {
    double fraction;
    std::size_t at;
  };
  std::vector<Remainder> remainders;
  remainders.reserve(shares.size());
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double weight = sum == 0 ? 1.0 / static_cast<double>(shares.size())
                                   : static_cast<double>(counted[i]) / static_cast<double>(sum);
    const double exact = static_cast<double>(total) * weight;
    shares[i] = std::min(static_cast<std::uint64_t>(exact), total - given);
    given += shares[i];
    remainders.push_back({exact - static_cast<double>(shares[i]), i});
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const Remainder& a, const Remainder& b) { return a.fraction > b.fraction; });
  for (std::size_t i = 0; given < total && !remainders.empty(); i = (i + 1) % remainders.size(), ++given) {
    ++shares[remainders[i].at];
  }
}

}  // namespace rooflined::tap
