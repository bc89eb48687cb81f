// Triton's generate extension: /v2/models/NAME/generate_stream and …/generate.
//
// `text_output` is what the model put out since the last frame. There is neither a total nor a marker of the end.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

Shape read_triton(JsonFrame& frame, FrameFacts& facts) {
  ChoiceFacts choice;
  bool has_output = false;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "text_output") {
      has_output = true;
      // A model with an output of more than one element sends a list.
      if (!json_raw_string(value)) json_each_item(value, [&](JsonValue& item) { read_text(item, choice); });
      read_text(value, choice);
    } else if (key == "cum_log_probs" || key == "output_log_probs" || key == "sequence_end") {
      facts.family = ServerFamily::kTensorRtLlm;
    } else if (key == "error") {
      read_error(value, facts);
    }
  });
  facts.damaged = facts.damaged || !whole;
  if (!has_output) return facts.error ? Shape::kNeutral : Shape::kForeign;
  facts.choices.push_back(choice);
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 2> kRoutes = {DialectRoute{"/generate_stream", true, "/v2/models/"},
                                                 DialectRoute{"/generate", false, "/v2/models/"}};

}  // namespace

constinit const Dialect kTritonDialect = {
    .name = "triton", .routes = kRoutes, .ends_with_body = true, .read = read_triton};

}  // namespace rooflined::tap
