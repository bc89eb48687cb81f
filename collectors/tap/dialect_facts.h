// What one frame of a response says about tokens, in every dialect's common form; and what a request says.
//
// Counts only: no text of a frame outlives the call that reads it.

#pragma once

#include "metrics/exchange.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rooflined::tap {

struct ChoiceFacts {
  std::uint32_t index = 0;
  bool has_text = false;    // answer, reasoning, tool call: whatever tokens turn into
  bool empty_text = false;  // a field for such text, and nothing in it
  bool reasoning = false;   // its text is reasoning
  bool role = false;        // names whose text it is, as the first frame of most servers does
  bool finished = false;
  // `characters` are those of all frames so far, wherever that is not less than before (SGLang's own route).
  bool text_so_far = false;
  std::uint32_t characters = 0;
  std::uint32_t texts = 0;     // strings that `characters` are from, and the last of them as the reader saw it
  std::string_view text = {};  // valid while the frame is being read
  std::uint32_t ids = 0;       // token ids on this frame
  std::uint32_t logprobs = 0;  // logprob entries on this frame
  // Output tokens of this choice so far, by the server's own count.
  std::optional<std::uint64_t> cumulative;
  // Where a whole answer is a list, its items say for themselves how many tokens were drafted for them.
  std::optional<std::uint64_t> draft_tokens = {};
  std::optional<std::uint64_t> draft_tokens_accepted = {};
};

// Whose tokens a total that stands beside no choice counts.
enum class TotalScope : std::uint8_t {
  kNone,
  kLastFinished,  // the choice that finished last (llama.cpp sends one such frame for each)
  kSum,           // all choices together
};

// A short name from the wire, kept only where it is made of characters that versions are made of.
class VersionText {
 public:
  void assign(std::string_view text) {
    size_ = 0;
    if (text.size() > text_.size()) return;
    for (const char c : text) {
      const bool fine = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
                        c == '-' || c == '_' || c == '+';
      if (!fine) return;
    }
    for (const char c : text) text_[size_++] = c;
  }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 64> text_{};
  std::size_t size_ = 0;
};

struct FrameFacts {
  static constexpr std::size_t kChoicesMax = 128;

  std::vector<ChoiceFacts> choices;
  TotalScope scope = TotalScope::kNone;
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> prompt_tokens;  // cached ones included
  std::optional<std::uint64_t> draft_tokens;
  std::optional<std::uint64_t> draft_tokens_accepted;
  bool end_marker = false;  // this frame ends its sequence's stream (dialects without a [DONE])
  bool last_frame = false;  // nothing follows it in this stream, as behind a [DONE]
  bool loads_only = false;  // a model was loaded or dropped: nothing was generated
  bool remote = false;      // another host generated this, and the server passed it on
  bool error = false;
  bool aborted = false;  // the server says that it gave up
  bool damaged = false;  // the text breaks off or is broken behind what was read
  ServerFamily family = ServerFamily::kUnknown;
  VersionText version;
  std::optional<std::uint64_t> response_id;  // a hash of the server's id for this response, where it is wanted
  bool wants_response_id = true;             // not touched by clear()
  std::uint64_t model = 0;                   // model_name_hash(); 0: not said
  // Where in the frame the text of its first choice stands; 0: not known.
  std::size_t text_at = 0;
  std::size_t text_size = 0;

  void clear() {
    choices.clear();
    scope = TotalScope::kNone;
    total.reset();
    prompt_tokens.reset();
    draft_tokens.reset();
    draft_tokens_accepted.reset();
    end_marker = last_frame = loads_only = remote = error = aborted = damaged = false;
    family = ServerFamily::kUnknown;
    version.clear();
    response_id.reset();
    model = 0;
    text_at = text_size = 0;
  }

  // The entry of a further choice, or nullptr where there are too many.
  ChoiceFacts* add_choice() {
    if (choices.size() >= kChoicesMax) return nullptr;
    return &choices.emplace_back();
  }
};

struct RequestFacts {
  bool streamed = false;
  bool echo = false;         // the prompt comes back in front of the answer
  bool echo_only = false;    // and nothing else: no token was asked for
  bool constrained = false;  // the answer has to have a given form (Ollama's `format`)
  // The text that a chat with `echo` repeats in a frame of its own, where there is any.
  std::uint64_t echoed_characters = 0;
  bool empty_prompt = false;
  std::uint64_t prompt_characters = 0;
  std::optional<std::uint64_t> prompt_tokens;
  std::uint32_t prompts = 1;
  std::uint64_t model = 0;  // model_name_hash(); 0: not said
  // Sequences that the answer will have: prompts × choices of each.
  std::uint32_t sequences = 1;
  // More of them are decoded than the answer will have: beam search, best_of.
  bool hidden_choices = false;
};

}  // namespace rooflined::tap
