#include "collectors/tap/sse_parser.h"

#include <algorithm>

namespace rooflined::tap {
namespace {

// Where the line that starts at `from` ends: its CR or LF. `next_lf` is kept between calls so that a text of many CRs
// is not searched for LF again and again.
std::size_t line_end(std::string_view text, std::size_t from, std::size_t& next_lf) {
  if (next_lf < from) next_lf = std::min(text.find('\n', from), text.size());
  const std::size_t cr = text.substr(from, next_lf - from).find('\r');
  return cr == std::string_view::npos ? next_lf : from + cr;
}

}  // namespace

void FrameParser::feed(std::string_view bytes) {
  std::size_t position = 0;
  std::size_t next_lf = std::min(bytes.find('\n'), bytes.size());
  while (position < bytes.size()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[position] == '\n') {
        ++position;
        continue;
      }
    }
    const std::size_t end = line_end(bytes, position, next_lf);
    const std::string_view piece = bytes.substr(position, end - position);
    const bool ended = end < bytes.size();
    position = ended ? end + 1 : end;
    if (ended && bytes[end] == '\r') after_cr_ = true;
    if (skip_line_) {
      if (ended) skip_line_ = false;
      continue;
    }
    if (ended && line_.empty() && piece.size() <= limits_.frame_bytes_max) {
      take_line(piece, bytes.size() - end);
      continue;
    }
    if (!line_.append(piece, limits_.frame_bytes_max)) {
      counters_.count(ParseError::kFrameTooLong);
      line_.release();
      data_.clear();
      pending_ = {};
      data_lines_ = 0;
      skip_line_ = !ended;
      skip_event_ = true;
      continue;
    }
    if (ended) {
      take_line(line_.view(), TextBuffer::kPadding);
      // An event whose data lies in the buffer of the line must move before that is used again.
      keep_pending();
      line_.clear();
    }
  }
  keep_pending();
}

void FrameParser::take_line(std::string_view line, std::size_t readable_after) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (!started_) {
    started_ = true;
    if (line.starts_with(kMark)) line.remove_prefix(kMark.size());
  }
  if (line.empty()) {
    dispatch();
    return;
  }
  const bool data = line.starts_with("data:");
  const bool event = line.starts_with("event:");
  if (after_gap_) {
    // The rest of a line whose start is lost. Only what begins something is taken up again.
    after_gap_ = false;
    if (!data && !event && line.front() != '{') return;
  }
  if (data) {
    take_data(line.substr(5), readable_after, false);
  } else if (line.front() == '{') {
    // A line of JSON is a frame by itself, and no event-stream field begins with a brace.
    emit(line, readable_after, false);
  } else if (event) {
    line.remove_prefix(6);
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    error_event_ = error_event_ || line == "error";
  } else if (line.starts_with("error:")) {
    take_data(line.substr(6), readable_after, true);
  }
}

// Whether an object is complete and the next thing begins: no JSON goes on like that. Servers that leave out the blank
// line between events are seen.
bool FrameParser::ends_event(std::string_view data) const {
  if (data_lines_ == 0 || !(data.starts_with('{') || data.starts_with("[DONE]"))) return false;
  const std::string_view before = pending_.data() != nullptr ? pending_ : data_.view();
  const std::size_t last = before.find_last_not_of(" \t");
  return before.starts_with('{') && before[last] == '}';
}

void FrameParser::take_data(std::string_view data, std::size_t readable_after, bool error) {
  if (!data.empty() && data.front() == ' ') data.remove_prefix(1);
  if (ends_event(data)) {
    dispatch();
    bare_lines_ = true;
  }
  error_event_ = error_event_ || error;
  if (skip_event_) return;
  ++data_lines_;
  if (data_lines_ == 1) {
    pending_ = data;
    pending_readable_ = readable_after;
    if (bare_lines_ && ends_event(pending_)) dispatch();
    return;
  }
  keep_pending();
  if (!data_.append("\n", limits_.frame_bytes_max) || !data_.append(data, limits_.frame_bytes_max)) {
    counters_.count(ParseError::kFrameTooLong);
    data_.release();
    skip_event_ = true;
  }
}

// Copies the data line that lies in somebody else's bytes.
void FrameParser::keep_pending() {
  if (pending_.data() == nullptr) return;
  // One line was within the bound already, or it lies in a piece that is.
  static_cast<void>(data_.append(pending_, limits_.frame_bytes_max));
  pending_ = {};
}

void FrameParser::dispatch() {
  if (data_lines_ != 0 && !skip_event_) {
    if (pending_.data() != nullptr) {
      emit(pending_, pending_readable_, error_event_);
    } else {
      emit(data_.view(), TextBuffer::kPadding, error_event_);
    }
  }
  pending_ = {};
  data_.clear();
  data_lines_ = 0;
  error_event_ = false;
  skip_event_ = false;
}

void FrameParser::emit(std::string_view text, std::size_t readable_after, bool error) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
    ++readable_after;
  }
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  if (text.empty()) return;
  ++counters_.frames;
  sink_.on_frame({text, readable_after, error, cut_});
}

void FrameParser::gap() {
  // Data lines that are whole make an event, even if its blank line is among what is missing.
  if (line_.empty()) dispatch();
  release();
  after_gap_ = true;
  started_ = true;
}

void FrameParser::finish() {
  cut_ = !line_.empty();
  if (cut_) {
    take_line(line_.view(), TextBuffer::kPadding);
    keep_pending();
  }
  dispatch();
  release();
}

void FrameParser::release() {
  line_.release();
  data_.release();
  pending_ = {};
  data_lines_ = 0;
  error_event_ = false;
  skip_line_ = false;
  skip_event_ = false;
  cut_ = false;
  after_cr_ = false;
}

}  // namespace rooflined::tap
