// What the responses of a server call its build (`system_fingerprint`), told from a word that is drawn anew for each.
//
//   in:   the word of each response
//   out:  whether it is news, and the word that can be relied on: one that two responses in a row have told
//
// Bounded: two words. Threads: one.

#pragma once

#include "metrics/base/time.h"
#include "metrics/exchange.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rooflined::daemon {

class BuildWord {
 public:
  enum class News : std::uint8_t {
    kNone,
    kFirst,
    kOther,  // than before: another build, it seems
    kDrawn,  // no response tells what the one before told: they say nothing of the build
  };

  News take(ExchangeId response, std::string_view word, LineTime at) {
    if (word == word_) return response == last_ ? News::kNone : take_again(response);
    const bool first = word_.empty();
    told_once_ = first || settled_ == word_ ? 0 : std::min(told_once_ + 1, kDrawnFrom);
    word_ = word;
    last_ = response;
    since_ = at;
    if (first) return News::kFirst;
    if (told_once_ < kDrawnFrom) return News::kOther;
    settled_.clear();
    return std::exchange(drawn_, true) ? News::kNone : News::kDrawn;
  }

  // Empty: none is known.
  const std::string& settled() const { return settled_; }
  // When a response told that one first.
  LineTime settled_since() const { return settled_since_; }

 private:
  static constexpr int kDrawnFrom = 2;

  News take_again(ExchangeId response) {
    last_ = response;
    if (settled_ == word_) return News::kNone;
    settled_ = word_;
    settled_since_ = since_;
    const bool was_drawn = std::exchange(drawn_, false);
    return was_drawn ? News::kOther : News::kNone;
  }

  std::string word_;
  ExchangeId last_ = 0;  // that told it
  LineTime since_;
  int told_once_ = 0;  // words in a row before this one, each of one response only
  bool drawn_ = false;
  std::string settled_;
  LineTime settled_since_;
};

}  // namespace rooflined::daemon
