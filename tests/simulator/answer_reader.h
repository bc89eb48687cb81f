// Reads a server's answer as it comes: SSE frames or JSON lines of a stream, or one JSON body.
//
// Bound: kPendingBytesMax of an unfinished frame or body; a longer one makes the answer incomplete.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::simulator {

class AnswerReader {
 public:
  static constexpr std::size_t kPendingBytesMax = std::size_t{16} << 20;

  explicit AnswerReader(bool stream) : stream_(stream) {}

  // How many frames with text these bytes completed.
  std::uint64_t read(std::string_view bytes);

  // Frames with text so far.
  std::uint64_t tokens() const noexcept { return tokens_; }
  // The server's own counts, where it gave them.
  std::optional<std::uint64_t> total_tokens() const noexcept { return total_tokens_; }
  std::optional<std::uint64_t> prompt_tokens() const noexcept { return prompt_tokens_; }
  // Call when nothing more comes. True when the end marker of a stream, or the whole body, was there, and no error.
  bool finish();

 private:
  void read_event(std::string_view data);

  bool stream_;
  bool broken_ = false;
  bool ended_ = false;
  std::string pending_;
  std::uint64_t tokens_ = 0;
  std::optional<std::uint64_t> total_tokens_;
  std::optional<std::uint64_t> prompt_tokens_;
};

}  // namespace rooflined::simulator
