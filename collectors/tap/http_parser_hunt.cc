// HttpParser, while it has lost its place.

#include "collectors/tap/http_head.h"
#include "collectors/tap/http_parser.h"

#include <algorithm>

namespace rooflined::tap {
namespace {

// Longer paths than this are not found again after a loss.
constexpr std::size_t kRequestLineMax = 1024;

// Where the request line starts that ends `text`; npos: it ends in none.
std::size_t find_request_line(std::string_view text) {
  const std::size_t version = text.rfind(" HTTP/1.");
  if (version == std::string_view::npos || text.size() - version > 11) return std::string_view::npos;
  for (std::size_t at = version; at-- > 0;) {
    if (looks_like_request_line(text.substr(at))) return at;
  }
  return std::string_view::npos;
}

}  // namespace

void HttpParser::hunt(bool line_is_whole) {
  state_ = State::kHunting;
  head_.release();
  line_is_whole_ = line_is_whole;
  line_passes_ = false;
  line_used_ = 0;
  line_bytes_ = 0;
  hunted_ = 0;
}

// Hunts from `line` on, which was taken for something else and may be an event's.
void HttpParser::hunt_in_line(std::string_view line, LineTime at) {
  const TextBuffer again = std::move(head_);
  hunt(true);
  feed(again.empty() ? line : again.view(), at);
}

std::size_t HttpParser::take_hunted(std::string_view bytes, LineTime at) {
  if (direction_ == Direction::kToServer) return take_hunted_request(bytes, at);
  std::size_t taken = 0;
  if (line_passes_) {
    const std::size_t end = bytes.find('\n');
    taken = end == std::string_view::npos ? bytes.size() : end + 1;
    if (end != std::string_view::npos) {
      line_passes_ = false;
      line_is_whole_ = true;
    }
    hunted_ += taken;
    sink_.on_stray(direction_, bytes.substr(0, taken), at);
  } else {
    bool ended = false;
    while (taken < bytes.size() && line_used_ < line_.size() && !ended) {
      ended = bytes[taken] == '\n';
      line_[line_used_++] = bytes[taken++];
    }
    hunted_ += taken;
    if (ended || line_used_ == line_.size()) judge_hunted_line(ended, at);
  }
  give_up_late(at);
  return taken;
}

void HttpParser::give_up_late(LineTime at) {
  if (state_ != State::kHunting || hunted_ <= hunted_bytes_max_) return;
  sink_.on_foreign(direction_, ParseError::kNotHttp, at);
  stop();
}

// Bodies of requests seldom end in a line end: the next request line begins behind one, in the middle of a line. It is
// known by its end, and looked for backwards from there.
std::size_t HttpParser::take_hunted_request(std::string_view bytes, LineTime at) {
  const std::size_t end = bytes.find('\n');
  const std::size_t taken = end == std::string_view::npos ? bytes.size() : end + 1;
  hunted_ += taken;
  const std::string_view tail =
      bytes.substr(taken - std::min(taken, kRequestLineMax), std::min(taken, kRequestLineMax));
  if (tail.size() == kRequestLineMax) head_.clear();
  static_cast<void>(head_.append(tail, 2 * kRequestLineMax));
  head_.keep_last(kRequestLineMax);
  if (unproven_ && head_.size() >= 3 && head_.size() == hunted_ && looks_like_tls(head_.view())) {
    sink_.on_foreign(direction_, ParseError::kTls, at);
    stop();
    return taken;
  }
  if (end != std::string_view::npos) {
    const std::size_t start = find_request_line(head_.view());
    if (start != std::string_view::npos) {
      ++counters_.resyncs;
      head_.keep_last(head_.size() - start);
      state_ = State::kHead;
      line_bytes_ = 0;
      return taken;
    }
    head_.clear();
  }
  give_up_late(at);
  return taken;
}

// `line_` holds the start of a line, or all of it.
void HttpParser::judge_hunted_line(bool line_ended, LineTime at) {
  const std::array<char, 48> copy = line_;
  const std::string_view line(copy.data(), line_used_);
  line_used_ = 0;
  if (unproven_ && looks_like_tls(line)) {
    sink_.on_foreign(direction_, ParseError::kTls, at);
    stop();
    return;
  }
  if (looks_like_status_line(line)) {
    ++counters_.resyncs;
    state_ = State::kHead;
    static_cast<void>(head_.append(line, limits_.head_bytes_max));
    line_bytes_ = line_ended ? 0 : line.size();
    return;
  }
  // Chunk headers end in CRLF, the lines of events almost never do, and no event's line is a number.
  if (line_ended && line_is_whole_ && line.size() > 2 && line.ends_with("\r\n") &&
      chunk_header(line.substr(0, line.size() - 2))) {
    ++counters_.resyncs;
    unproven_ = false;
    return;
  }
  line_passes_ = !line_ended;
  line_is_whole_ = line_ended;
  sink_.on_stray(direction_, line, at);
}

}  // namespace rooflined::tap
