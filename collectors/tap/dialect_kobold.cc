// KoboldCpp's own routes: /api/extra/generate/stream (also Aphrodite's), and /api/v1/generate for whole answers.
//
// A frame is {"token": text, "finish_reason": …}; KoboldCpp polls every 20 ms, so that the text may be of any number of
// tokens. Its stream has no other end than the reason, Aphrodite's has none but the end of the body.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

void read_result(JsonValue& item, FrameFacts& facts) {
  ChoiceFacts* choice = facts.add_choice();
  if (choice == nullptr) return;
  choice->index = static_cast<std::uint32_t>(facts.choices.size() - 1);
  json_each_field_of(item, [&](std::string_view key, JsonValue& value) {
    if (key == "text") {
      read_text(value, *choice);
    } else if (key == "finish_reason") {
      read_finish_reason(value, *choice, facts);
    } else if (key == "completion_tokens") {
      choice->cumulative = positive(json_count(value));
    } else if (key == "prompt_tokens") {
      facts.prompt_tokens = positive(json_count(value));
    }
  });
}

Shape read_kobold(JsonFrame& frame, FrameFacts& facts) {
  ChoiceFacts choice;
  bool has_token = false;
  bool has_results = false;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "token") {
      has_token = json_raw_string(value).has_value();
      read_text(value, choice);
    } else if (key == "finish_reason") {
      read_finish_reason(value, choice, facts);
    } else if (key == "results") {
      json_each_item(value, [&](JsonValue& item) { read_result(item, facts); });
      has_results = !facts.choices.empty();
    } else if (key == "error") {
      read_error(value, facts);
    }
  });
  facts.damaged = facts.damaged || !whole;
  if (has_results) return Shape::kOwn;
  if (!has_token) return facts.error ? Shape::kNeutral : Shape::kForeign;
  facts.last_frame = choice.finished;
  facts.choices.push_back(choice);
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 4> kRoutes = {
    DialectRoute{"/api/extra/generate/stream", true},
    DialectRoute{"/api/v1/generate"},
    DialectRoute{"/api/latest/generate"},
    DialectRoute{"/api/extra/generate"},
};

}  // namespace

constinit const Dialect kKoboldDialect = {
    .name = "kobold", .routes = kRoutes, .ends_with_body = true, .read = read_kobold};

}  // namespace rooflined::tap
