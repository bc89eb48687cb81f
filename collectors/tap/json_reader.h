// Opens a frame as JSON for one look over it, front to back (simdjson On-Demand), and the few ways to read a value.
//
// simdjson refuses a whole document for one byte that is not UTF-8, and some servers cut characters in two. Such a text
// is read once more from a copy in which bad bytes are replaced. Strings are judged in their raw form and never
// unescaped, so no text is left in the parser's own buffers. Small texts use one parser for ever; a big one gets its
// own, freed by close(), and one of megabytes is condensed first. Nothing throws. Thread: one; a document is valid
// until the next open() or close().

#pragma once

#include "collectors/tap/http_buffer.h"

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::tap {

class JsonReader {
 public:
  // What the daemon ever opens is bounded before; this only keeps the arithmetic of capacities safe.
  static constexpr std::size_t kTextMax = 64 * 1024 * 1024;

  // nullptr: no JSON. `readable_after`: bytes behind `text` that may be read; with 64 of them nothing is copied.
  simdjson::ondemand::document* open(std::string_view text, std::size_t readable_after);
  void close();
  // Where a piece of the document that is open stands in the text that was given to open(); nothing where that was
  // changed.
  std::optional<std::size_t> place_of(std::string_view piece) const noexcept {
    if (cleaned() || condensed_) return {};
    return static_cast<std::size_t>(piece.data() - start_);
  }
  // Whether the last open() had to take bad bytes out.
  bool cleaned() const noexcept { return !cleaned_.empty(); }

 private:
  simdjson::error_code iterate(const char* text, std::size_t size);

  simdjson::ondemand::parser small_;
  std::unique_ptr<simdjson::ondemand::parser> big_;
  simdjson::ondemand::document document_;
  TextBudget budget_{.held = 0, .held_max = kTextMax};
  TextBuffer scratch_{budget_};
  std::string cleaned_;
  const char* start_ = nullptr;  // of the document
  bool condensed_ = false;
};

using JsonObject = simdjson::ondemand::object;
using JsonValue = simdjson::ondemand::value;

// What a dialect reads: the object of one frame, from its start.
class JsonFrame {
 public:
  JsonObject object;
};

// The key as it stands in the text, without its quotes.
std::string_view json_key(simdjson::ondemand::field& field);

// A string as it stands in the text, escapes and all, without its quotes; nullopt where the value is no string.
std::optional<std::string_view> json_raw_string(JsonValue& value);

// How many characters such a raw string stands for: escapes and UTF-8 sequences count one each.
std::uint32_t json_characters(std::string_view raw);

// A count: a whole number, not negative, also written as 12.0. nullopt for anything else.
std::optional<std::uint64_t> json_count(JsonValue& value);

bool json_is_null(JsonValue& value);
std::optional<bool> json_bool(JsonValue& value);

// Calls on_field(key, value) for each field. False: the text is damaged from some point on; what came before was handed
// over.
template <typename OnField>
bool json_each_field(JsonObject& object, OnField on_field) {
  for (auto field : object) {
    simdjson::ondemand::field found;
    if (std::move(field).get(found) != simdjson::SUCCESS) return false;
    const std::string_view key = json_key(found);
    JsonValue value = found.value();
    on_field(key, value);
  }
  return true;
}

// The same for the fields of a value. False also where it is no object.
template <typename OnField>
bool json_each_field_of(JsonValue& value, OnField on_field) {
  JsonObject object;
  return value.get_object().get(object) == simdjson::SUCCESS && json_each_field(object, on_field);
}

// Calls on_item(value) for each item. False: no array, or damaged.
template <typename OnItem>
bool json_each_item(JsonValue& value, OnItem on_item) {
  simdjson::ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return false;
  for (auto item : array) {
    if (item.error() != simdjson::SUCCESS) return false;
    JsonValue found = item.value_unsafe();
    on_item(found);
  }
  return true;
}

// Items of an array, 0 where the value is none.
std::uint32_t json_array_size(JsonValue& value);

}  // namespace rooflined::tap
