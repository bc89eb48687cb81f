// Knows a frame again that differs from an earlier one of its response in nothing but the text of one string, so that
// it need not be taken apart: most frames of most servers.
//
//   in:   a frame that was read, and what it said; then other frames
//   out:  what a frame says that is the same around its text
//
// Keeps what stands around the text (ids, model, field names), never the text, and wipes it in the end. Texts with
// escapes or beyond ASCII are left to the JSON reader. Bounded; gives up on a response whose frames never repeat.
// Thread: one.

#pragma once

#include "collectors/tap/dialect_facts.h"
#include "collectors/tap/http_buffer.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rooflined::tap {

class FrameMemo {
 public:
  explicit FrameMemo(TextBudget& budget) noexcept : around_(budget) {}

  // `facts` is what `frame` says. Where that is one text and nothing else, it becomes the pattern.
  void learn(std::string_view frame, const FrameFacts& facts);
  // What a frame of the pattern says, valid until the next call; nullptr: it is another.
  const ChoiceFacts* read(std::string_view frame);
  void release() noexcept {
    around_.release();
    front_ = 0;
  }

 private:
  TextBuffer around_;      // what stands before the text, and what behind it
  std::size_t front_ = 0;  // bytes of the former; 0: no pattern
  ChoiceFacts choice_;
  std::uint32_t misses_ = 0;  // in a row
};

}  // namespace rooflined::tap
