#include "collectors/tap/http_parser.h"

#include "collectors/tap/http_head.h"

#include <algorithm>

namespace rooflined::tap {
namespace {

bool is_method_character(char c) {
  return (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

}  // namespace

HttpParser::HttpParser(Direction direction, bool joined_late, const HttpLimits& limits, HttpCounters& counters,
                       HttpParserSink& sink)
    : direction_(direction),
      state_(joined_late ? State::kHunting : State::kHead),
      head_(counters.text),
      limits_(limits),
      counters_(counters),
      sink_(sink),
      hunted_bytes_max_(limits.hunted_bytes_max) {}

void HttpParser::stop() noexcept {
  state_ = State::kStopped;
  head_.release();
  explicit_bzero(line_.data(), line_.size());
}

void HttpParser::feed(std::string_view bytes, LineTime at) {
  while (!bytes.empty()) {
    std::size_t taken = 0;
    switch (state_) {
      case State::kHead:
        taken = take_head(bytes, at);
        break;
      case State::kLength:
      case State::kUntilClose:
      case State::kChunkData:
        taken = take_body(bytes, at);
        break;
      case State::kChunkSize:
        taken = take_chunk_size(bytes, at);
        break;
      case State::kChunkEnd:
        taken = take_chunk_end(bytes);
        break;
      case State::kTrailers:
        taken = take_trailers(bytes, at);
        break;
      case State::kHunting:
        taken = take_hunted(bytes, at);
        break;
      case State::kStopped:
        return;
    }
    bytes.remove_prefix(taken);
  }
}

// What a stream that began with something else than HTTP may hold before its first event.
constexpr std::uint64_t kStrangeBytesMax = 64 * 1024;

// Judges the first bytes of a stream. True: they are no start of HTTP/1.x, and what follows from that was done.
bool HttpParser::foreign_start(LineTime at) {
  const std::string_view start = head_.view();
  ParseError why = ParseError::kNotHttp;
  if (is_tls_content_type(start[0])) {
    if (start.size() == 1) return false;
    if (start[1] == 3) why = ParseError::kTls;
  } else if (direction_ == Direction::kToServer) {
    constexpr std::string_view kPreface = "PRI * HTTP/2.0";
    if (start.size() >= 5 && start.starts_with("PRI *")) {
      if (start.size() < kPreface.size()) return false;
      why = ParseError::kHttp2;
    } else {
      const std::size_t space = start.find(' ');
      const std::string_view method = start.substr(0, space);
      const bool plausible = std::all_of(method.begin(), method.end(), is_method_character) && method.size() <= 20;
      if (plausible) return false;
    }
  } else {
    constexpr std::string_view kStatus = "HTTP/1.";
    if (kStatus.starts_with(start.substr(0, kStatus.size()))) return false;
    // A response in its middle behind a handshake of somebody else, perhaps (a connection handed over): not for long.
    hunted_bytes_max_ = std::min(hunted_bytes_max_, kStrangeBytesMax);
    hunt_in_line(start, at);
    return true;
  }
  sink_.on_foreign(direction_, why, at);
  stop();
  return true;
}

std::size_t HttpParser::take_head(std::string_view bytes, LineTime at) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    // One line, or what there is of it.
    const std::size_t end = bytes.find('\n', taken);
    const std::string_view piece = bytes.substr(taken, end == std::string_view::npos ? end : end + 1 - taken);
    taken += piece.size();
    // Blank lines before the start line are ignored (RFC 9112 §2.2).
    if (head_.empty() && (piece == "\n" || piece == "\r\n" || piece == "\r")) continue;
    if (!head_.append(piece, limits_.head_bytes_max)) {
      counters_.count(ParseError::kHeadTooLong);
      hunt(false);
      return taken;
    }
    if (unproven_ && foreign_start(at)) return taken;
    line_bytes_ += piece.size();
    if (end == std::string_view::npos) return taken;
    const std::string_view line = head_.view().substr(head_.size() - line_bytes_);
    line_bytes_ = 0;
    if (line.size() == head_.size() && !is_start_line(line)) {
      // Bytes between messages: a body where none should be, or our own loss of the place.
      counters_.count(ParseError::kHead);
      hunt_in_line(line, at);
      return taken;
    }
    if (line == "\n" || line == "\r\n") {
      head_complete(at);
      return taken;
    }
  }
  return taken;
}

bool HttpParser::is_start_line(std::string_view line) const {
  if (direction_ == Direction::kToClient) return looks_like_status_line(line);
  return line.find(" HTTP/1.") != std::string_view::npos;
}

void HttpParser::head_complete(LineTime at) {
  // Taken out first: the sink may stop this parser.
  TextBuffer head = std::move(head_);
  state_ = State::kHead;
  const BodyFraming framing = sink_.on_head(direction_, head.view(), at);
  if (state_ == State::kStopped) return;
  if (framing.kind != BodyFraming::Kind::kNotAHead) unproven_ = false;
  left_ = framing.length;
  switch (framing.kind) {
    case BodyFraming::Kind::kInterim:
      break;
    case BodyFraming::Kind::kNone:
      message_end(true, at);
      break;
    case BodyFraming::Kind::kLength:
      state_ = State::kLength;
      if (left_ == 0) message_end(true, at);
      break;
    case BodyFraming::Kind::kChunked:
      state_ = State::kChunkSize;
      break;
    case BodyFraming::Kind::kUntilClose:
      state_ = State::kUntilClose;
      break;
    case BodyFraming::Kind::kOpaque:
      stop();
      break;
    case BodyFraming::Kind::kNotAHead:
      hunt(true);
      break;
  }
}

void HttpParser::message_end(bool complete, LineTime at) {
  state_ = State::kHead;
  line_bytes_ = 0;
  body_may_be_missing_ = false;
  head_.release();
  sink_.on_message_end(direction_, complete, at);
}

std::size_t HttpParser::take_body(std::string_view bytes, LineTime at) {
  if (state_ == State::kUntilClose) {
    sink_.on_body(direction_, bytes, at);
    return bytes.size();
  }
  // Bodies of the routes that matter begin with a brace, requests with the capitals of their method.
  if (body_may_be_missing_ && is_method_character(bytes.front())) {
    message_end(false, at);
    return 0;
  }
  body_may_be_missing_ = false;
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_));
  left_ -= taken;
  const bool chunk = state_ == State::kChunkData;
  sink_.on_body(direction_, bytes.substr(0, taken), at);
  if (left_ != 0 || state_ == State::kStopped) return taken;
  if (chunk) {
    state_ = State::kChunkEnd;
    line_bytes_ = 0;
  } else {
    message_end(true, at);
  }
  return taken;
}

// A whole chunk header line. False: it is none.
bool HttpParser::chunk_header(std::string_view line) {
  const auto size = parse_chunk_size(line);
  if (!size) return false;
  left_ = *size;
  line_bytes_ = 0;
  state_ = left_ == 0 ? State::kTrailers : State::kChunkData;
  return true;
}

std::size_t HttpParser::take_chunk_size(std::string_view bytes, LineTime at) {
  const std::size_t end = bytes.find('\n');
  const std::size_t taken = end == std::string_view::npos ? bytes.size() : end + 1;
  std::string_view line = bytes.substr(0, taken);
  if (!head_.empty() || end == std::string_view::npos) {
    if (!head_.append(line, limits_.chunk_line_bytes_max)) {
      counters_.count(ParseError::kChunk);
      sink_.on_missing(direction_, 0, at);
      hunt(false);
      return taken;
    }
    if (end == std::string_view::npos) return taken;
    line = head_.view();
  }
  const bool good = chunk_header(line.substr(0, line.size() - 1));
  if (!good) {
    counters_.count(ParseError::kChunk);
    hunt_in_line(line, at);
    return taken;
  }
  head_.clear();
  return taken;
}

std::size_t HttpParser::take_chunk_end(std::string_view bytes) {
  if (bytes[0] == '\r' && line_bytes_ == 0) {
    line_bytes_ = 1;
    return 1;
  }
  if (bytes[0] == '\n') {
    line_bytes_ = 0;
    state_ = State::kChunkSize;
    return 1;
  }
  // The size was wrong. The data went on meanwhile, so nothing is missing; only the framing is.
  counters_.count(ParseError::kChunk);
  hunt(false);
  return 0;
}

std::size_t HttpParser::take_trailers(std::string_view bytes, LineTime at) {
  // Fields up to a blank line; their content is nothing to us. `left_` is the length of the current one, CR aside.
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ++line_bytes_;
    if (bytes[i] == '\n') {
      if (left_ == 0) {
        message_end(true, at);
        return i + 1;
      }
      left_ = 0;
    } else if (bytes[i] != '\r') {
      ++left_;
    }
    if (line_bytes_ > limits_.head_bytes_max) {
      counters_.count(ParseError::kChunk);
      message_end(true, at);
      hunt(false);
      return i + 1;
    }
  }
  return bytes.size();
}

void HttpParser::gap(std::uint64_t bytes_missing, LineTime at) {
  const State before = state_;
  if (before == State::kStopped || bytes_missing == 0) return;
  const bool at_boundary = head_.empty() && line_bytes_ == 0 && (before == State::kHead || before == State::kChunkSize);
  sink_.on_missing(direction_, bytes_missing, at);
  switch (before) {
    case State::kUntilClose:
      return;
    case State::kLength:
    case State::kChunkData:
      if (bytes_missing < left_) {
        left_ -= bytes_missing;
        return;
      }
      if (bytes_missing == left_) {
        left_ = 0;
        if (before == State::kLength) {
          message_end(true, at);
        } else {
          state_ = State::kChunkEnd;
          line_bytes_ = 0;
        }
        return;
      }
      if (before == State::kLength) message_end(false, at);
      break;
    case State::kTrailers:
      message_end(true, at);
      break;
    default:
      break;
  }
  if (state_ != State::kStopped) hunt(at_boundary);
}

void HttpParser::finish(LineTime at) {
  const State before = state_;
  if (before == State::kStopped) return;
  if (before == State::kHunting && line_used_ != 0) {
    const std::array<char, 48> copy = line_;
    const std::string_view rest(copy.data(), line_used_);
    line_used_ = 0;
    sink_.on_stray(direction_, rest, at);
  }
  const bool between = before == State::kHead;
  if (!between) message_end(before == State::kUntilClose || before == State::kTrailers, at);
  stop();
}

}  // namespace rooflined::tap
