// TGI's own routes: /generate_stream, and / for both kinds of answer (/generate belongs to SGLang's dialect first: the
// shape of the answer tells them apart).
//
// One frame is one token, the stop token and special ones included. The frame with `generated_text` is the last.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

// False: no token object.
bool read_token(JsonValue& value, ChoiceFacts& choice) {
  bool special = false;
  std::uint32_t characters = 0;
  const bool object = json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "text") characters = json_characters(json_raw_string(field).value_or(std::string_view{}));
    if (key == "special") special = json_bool(field).value_or(false);
  });
  if (!object) return false;
  choice.ids = 1;
  choice.has_text = !special && characters != 0;
  choice.characters = special ? 0 : characters;
  return true;
}

Shape read_tgi(JsonFrame& frame, FrameFacts& facts) {
  ChoiceFacts choice;
  ChoiceFacts whole_text;
  bool has_token = false;
  bool has_whole_text = false;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "token") {
      has_token = read_token(value, choice);
    } else if (key == "generated_text") {
      has_whole_text = json_raw_string(value).has_value();
      read_text(value, whole_text);
    } else if (key == "details") {
      json_each_field_of(value, [&](std::string_view name, JsonValue& field) {
        if (name == "generated_tokens") choice.cumulative = positive(json_count(field));
        if (name == "input_length") facts.prompt_tokens = positive(json_count(field));
      });
    } else if (key == "error") {
      read_error(value, facts);
    }
  });
  facts.damaged = facts.damaged || !whole;
  if (!has_token && !has_whole_text) return facts.error ? Shape::kNeutral : Shape::kForeign;
  choice.finished = has_whole_text;
  if (!has_token) choice.characters = whole_text.characters;
  facts.last_frame = has_whole_text;
  facts.choices.push_back(choice);
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 2> kRoutes = {DialectRoute{"/generate_stream", true}, DialectRoute{"/"}};

}  // namespace

constinit const Dialect kTgiDialect = {
    .name = "tgi", .routes = kRoutes, .family = ServerFamily::kTgi, .read = read_tgi};

}  // namespace rooflined::tap
