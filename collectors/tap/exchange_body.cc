#include "collectors/tap/exchange_body.h"

namespace rooflined::tap {

void ResponseBody::start(MediaType media_type, ContentCoding coding, bool stream_expected) {
  const bool stream = media_type == MediaType::kEventStream || media_type == MediaType::kNdjson;
  form_ = stream ? Form::kStream : Form::kUndecided;
  stream_expected_ = stream_expected && media_type != MediaType::kJson;
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
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return;
    const bool json = text[first] == '{' || text[first] == '[';
    form_ = json && !stream_expected_ ? Form::kDocument : Form::kStream;
  }
  if (form_ == Form::kStream) {
    frames_.feed(text);
  } else if (form_ == Form::kDocument && !document_.append(text, limits_.document_bytes_max)) {
    counters_.count(ParseError::kDocumentTooLong);
    give_up();
  }
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
