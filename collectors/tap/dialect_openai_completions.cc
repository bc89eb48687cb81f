// OpenAI text completions: /v1/completions. Text is in choices[].text, of a stream and of a whole answer alike.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

Shape read_completions(JsonFrame& frame, FrameFacts& facts) {
  bool own = false;
  bool foreign = false;
  const OpenAiFrame read =
      read_openai_frame(frame, facts, [&](std::string_view key, JsonValue& value, ChoiceFacts& choice) {
        if (key == "text") {
          own = true;
          read_text(value, choice);
        } else if (key == "delta" || key == "message") {
          foreign = true;
        }
      });
  if (own) return Shape::kOwn;
  if (foreign || read.object == OpenAiObject::kChat) return Shape::kForeign;
  if (read.has_choices) return read.object == OpenAiObject::kCompletion ? Shape::kOwn : Shape::kNeutral;
  return facts.error || read.has_counts ? Shape::kNeutral : Shape::kForeign;
}

constexpr std::array<DialectRoute, 1> kRoutes = {DialectRoute{"/v1/completions"}};

}  // namespace

constinit const Dialect kOpenAiCompletionsDialect = {
    .name = "openai_completions", .routes = kRoutes, .read = read_completions};

}  // namespace rooflined::tap
