#include "collectors/tap/json_reader.h"

#include "collectors/tap/json_condense.h"
#include "metrics/base/utf8.h"

#include <cmath>
#include <cstring>

namespace rooflined::tap {
namespace {

// Its indexes take 4 to 6 bytes for each byte of text: this much may stay allocated.
constexpr std::size_t kSmallText = 64 * 1024;
// Larger ones are condensed: simdjson wants six bytes for each of theirs.
constexpr std::size_t kWholeText = 1024 * 1024;

}  // namespace

simdjson::error_code JsonReader::iterate(const char* text, std::size_t size) {
  simdjson::ondemand::parser* parser = &small_;
  if (size > kSmallText) {
    big_ = std::make_unique<simdjson::ondemand::parser>();
    parser = big_.get();
  }
  return parser->iterate(text, size, size + simdjson::SIMDJSON_PADDING).get(document_);
}

simdjson::ondemand::document* JsonReader::open(std::string_view text, std::size_t readable_after) {
  close();
  if (text.empty() || text.size() > kTextMax) return nullptr;
  condensed_ = text.size() > kWholeText;
  if (condensed_) {
    if (!condense_json(text, scratch_, kWholeText)) return nullptr;
    text = scratch_.view();
  } else if (readable_after < simdjson::SIMDJSON_PADDING) {
    if (!scratch_.append(text, kWholeText)) return nullptr;
    text = scratch_.view();
  }
  start_ = text.data();
  simdjson::error_code error = iterate(text.data(), text.size());
  if (error == simdjson::UTF8_ERROR || error == simdjson::UNESCAPED_CHARS) {
    cleaned_ = to_label(text, text.size() * 3);
    const std::size_t size = cleaned_.size();
    cleaned_.append(simdjson::SIMDJSON_PADDING, ' ');
    error = iterate(cleaned_.data(), size);
  }
  return error == simdjson::SUCCESS ? &document_ : nullptr;
}

void JsonReader::close() {
  if (scratch_.size() > kSmallText) {
    scratch_.release();
  } else {
    scratch_.clear();
  }
  big_.reset();
  if (!cleaned_.empty()) {
    explicit_bzero(cleaned_.data(), cleaned_.size());
    cleaned_.clear();
    cleaned_.shrink_to_fit();
  }
}

std::string_view json_key(simdjson::ondemand::field& field) {
  const char* start = field.key().raw();
  // Nearly every key is short and plain; the padding makes this look-ahead lawful at the end of the text too.
  const void* quote = std::memchr(start, '"', simdjson::SIMDJSON_PADDING);
  const char* end = static_cast<const char*>(quote);
  if (end != nullptr && (end == start || end[-1] != '\\')) return {start, static_cast<std::size_t>(end - start)};
  // Ends at the first quote that is not escaped. Stage 1 has seen that quote, so the search ends inside the text.
  end = start;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {start, static_cast<std::size_t>(end - start)};
}

std::optional<std::string_view> json_raw_string(JsonValue& value) {
  std::string_view token = value.raw_json_token();
  // The token reaches to the next one: white space may follow the string.
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t')) {
    token.remove_suffix(1);
  }
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') return {};
  return token.substr(1, token.size() - 2);
}

std::uint32_t json_characters(std::string_view raw) {
  std::uint32_t characters = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto byte = static_cast<unsigned char>(raw[i]);
    if (byte == '\\') {
      ++i;
      // The low half of a surrogate pair belongs to the character that the high half began.
      const bool unicode = i < raw.size() && raw[i] == 'u';
      const bool low_half = unicode && i + 2 < raw.size() && (raw[i + 1] == 'd' || raw[i + 1] == 'D') &&
                            std::string_view("cdefCDEF").find(raw[i + 2]) != std::string_view::npos;
      if (unicode) i += 4;
      if (!low_half) ++characters;
    } else if ((byte & 0xC0) != 0x80) {
      ++characters;
    }
  }
  return characters;
}

std::optional<std::uint64_t> json_count(JsonValue& value) {
  std::uint64_t whole = 0;
  if (value.get_uint64().get(whole) == simdjson::SUCCESS) return whole;
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS) return {};
  // Above 2^53 a double is no count any more.
  if (!(number >= 0) || number > 9007199254740992.0 || std::floor(number) != number) return {};
  return static_cast<std::uint64_t>(number);
}

bool json_is_null(JsonValue& value) {
  const std::string_view token = value.raw_json_token();
  return token.starts_with("null");
}

std::optional<bool> json_bool(JsonValue& value) {
  const std::string_view token = value.raw_json_token();
  if (token.starts_with("true")) return true;
  if (token.starts_with("false")) return false;
  return {};
}

std::uint32_t json_array_size(JsonValue& value) {
  std::uint32_t items = 0;
  json_each_item(value, [&](JsonValue&) { ++items; });
  return items;
}

}  // namespace rooflined::tap
