#include "collectors/tap/exchange_body.h"

namespace rooflined::tap {

void ResponseBody::start(MediaType media_type, ContentCoding coding, bool stream_expected, bool length_known) {
  const bool stream = media_type == MediaType::kEventStream || media_type == MediaType::kNdjson;
  form_ = stream ? Form::kStream : Form::kUndecided;
  stream_expected_ = stream_expected && media_type != MediaType::kJson;
  lines_possible_ = stream_expected && media_type == MediaType::kJson && !length_known;
  switch (coding) {
    case ContentCoding::kIdentity:
      break;
    case ContentCoding::kGzip:
      inflater_ = std::make_unique<Inflater>(Inflater::Coding::kGzip);
      break;
    case ContentCoding::kDeflate:
      inflater_ = std::make_unique<Inflater>(Inflater::Coding::kDeflate);
      break;
    case ContentCoding::kOther:
      counters_.count(ParseError::kEncoded);
      give_up();
      break;
  }
}

void ResponseBody::feed(std::string_view bytes) {
  if (form_ == Form::kUnreadable) return;
  if (!inflater_) {
    take_text(bytes);
    return;
  }
  if (!inflater_->feed(bytes, [this](std::string_view text) { take_text(text); })) {
    counters_.count(ParseError::kEncoded);
    give_up();
  }
}

void ResponseBody::take_text(std::string_view text) {
  if (form_ == Form::kUndecided) {
    // White space, and the bytes of a byte-order mark.
    const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string_view::npos) return;
    text.remove_prefix(first);
    const bool json = text.front() == '{' || text.front() == '[';
    form_ = json && !stream_expected_ ? Form::kDocument : Form::kStream;
  }
  if (form_ == Form::kStream) {
    frames_.feed(text);
  } else if (form_ == Form::kDocument) {
    take_document(text);
  }
}

void ResponseBody::take_document(std::string_view text) {
  if (!document_.append(text, limits_.document_bytes_max)) {
    counters_.count(ParseError::kDocumentTooLong);
    give_up();
    return;
  }
  const std::size_t line_end = lines_possible_ ? text.find('\n') : std::string_view::npos;
  if (line_end == std::string_view::npos) return;
  lines_possible_ = false;
  std::string_view line = document_.view();
  line = line.substr(0, line.size() - (text.size() - line_end));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.size() < 2 || line.front() != '{' || line.back() != '}') return;
  // Lines of JSON under the name of one.
  form_ = Form::kStream;
  frames_.feed(document_.view());
  document_.release();
}

void ResponseBody::gap() {
  if (form_ == Form::kUnreadable) return;
  if (inflater_) {
    // What follows refers to bytes that are missing.
    counters_.count(ParseError::kEncoded);
    give_up();
  } else if (form_ == Form::kStream) {
    frames_.gap();
  } else if (form_ == Form::kDocument) {
    give_up();
  } else {
    form_ = Form::kStream;
    frames_.gap();
  }
}

void ResponseBody::finish() {
  if (form_ == Form::kStream) frames_.finish();
}

void ResponseBody::give_up() {
  release();
  form_ = Form::kUnreadable;
}

void ResponseBody::release() {
  frames_.release();
  document_.release();
  inflater_.reset();
}

}  // namespace rooflined::tap
