#include "collectors/tap/json_condense.h"

namespace rooflined::tap {
namespace {

constexpr std::size_t kStringKept = 256;
constexpr std::size_t kNumbersKept = 64;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
bool is_of_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}
bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Where the string that begins at `from` ends: behind its quote. `keep` becomes how far it is copied.
std::size_t string_end(std::string_view text, std::size_t from, std::size_t& keep) {
  std::size_t at = from + 1;
  keep = 0;
  while (at < text.size() && text[at] != '"') {
    if (keep == 0 && at - from > kStringKept && !continues_character(text[at])) keep = at;
    at += text[at] == '\\' ? 2 : 1;
  }
  at = at < text.size() ? at + 1 : text.size();
  if (keep == 0) keep = at;
  return at;
}

}  // namespace

bool condense_json(std::string_view text, TextBuffer& out, std::size_t bytes_max) {
  std::size_t numbers = 0;  // in a row
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t start = at;
    if (text[at] == '"') {
      std::size_t keep = 0;
      at = string_end(text, start, keep);
      numbers = 0;
      if (!out.append(text.substr(start, keep - start), bytes_max)) return false;
      if (keep != at && !out.append("\"", bytes_max)) return false;
      continue;
    }
    if (is_of_number(text[at])) {
      while (at < text.size() && is_of_number(text[at])) ++at;
      while (at < text.size() && is_space(text[at])) ++at;
      const bool more = at < text.size() && text[at] == ',';
      if (more) ++at;
      while (at < text.size() && is_space(text[at])) ++at;
      if (++numbers > kNumbersKept && more) continue;
    } else {
      while (at < text.size() && text[at] != '"' && !is_of_number(text[at])) ++at;
      numbers = 0;
    }
    if (!out.append(text.substr(start, at - start), bytes_max)) return false;
  }
  return true;
}

}  // namespace rooflined::tap
