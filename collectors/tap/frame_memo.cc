#include "collectors/tap/frame_memo.h"

#include <algorithm>

namespace rooflined::tap {
namespace {

// Around a text are 100 to 500 bytes.
constexpr std::size_t kAroundMax = 2048;
// A counter or a time on each frame, or choices in turn: it will not get better.
constexpr std::uint32_t kMissesMax = 8;

// The content of a string that stands for itself, byte by byte.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

bool says_one_text_only(const FrameFacts& facts) {
  if (facts.choices.size() != 1 || facts.text_at == 0) return false;
  if (facts.total || facts.prompt_tokens || facts.draft_tokens || facts.end_marker || facts.last_frame) return false;
  if (facts.loads_only || facts.remote || facts.error || facts.aborted || facts.damaged) return false;
  const ChoiceFacts& choice = facts.choices.front();
  return choice.texts == 1 && !choice.finished && !choice.text_so_far && !choice.cumulative && choice.ids == 0 &&
         choice.logprobs == 0;
}

}  // namespace

void FrameMemo::learn(std::string_view frame, const FrameFacts& facts) {
  if (misses_ > kMissesMax || !says_one_text_only(facts)) return;
  const std::string_view front = frame.substr(0, facts.text_at);
  const std::string_view back = frame.substr(facts.text_at + facts.text_size);
  around_.clear();
  const bool kept = around_.append(front, kAroundMax) && around_.append(back, kAroundMax);
  front_ = kept ? front.size() : 0;
  choice_ = facts.choices.front();
}

const ChoiceFacts* FrameMemo::read(std::string_view frame) {
  if (front_ == 0) return nullptr;
  const std::string_view around = around_.view();
  const bool same = frame.size() > around.size() && frame.starts_with(around.substr(0, front_)) &&
                    frame.ends_with(around.substr(front_));
  if (!same) {
    if (++misses_ > kMissesMax) release();
    return nullptr;
  }
  const std::string_view text = frame.substr(front_, frame.size() - around.size());
  if (!is_plain(text)) return nullptr;
  misses_ = 0;
  choice_.characters = static_cast<std::uint32_t>(text.size());
  return &choice_;
}

}  // namespace rooflined::tap
