// Frames that say in `type` what they are, as Responses, Anthropic and LM Studio send them.

#pragma once

#include "collectors/tap/dialect_openai.h"

#include <string_view>

namespace rooflined::tap {

// on_type(value) gets the frame's type, on_field(key, value, nested) its other fields and those of its field `inner`:
// the answer itself, which some events carry and a whole answer is.
template <typename OnType, typename OnField>
void read_event_frame(JsonFrame& frame, FrameFacts& facts, std::string_view inner, OnType on_type, OnField on_field) {
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "type") {
      on_type(value);
    } else if (key == "error") {
      read_error(value, facts);
    } else if (key == inner) {
      json_each_field_of(value, [&](std::string_view name, JsonValue& field) { on_field(name, field, true); });
    } else {
      on_field(key, value, false);
    }
  });
  facts.damaged = facts.damaged || !whole;
}

}  // namespace rooflined::tap
