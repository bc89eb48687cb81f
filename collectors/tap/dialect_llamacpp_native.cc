// llama.cpp's own routes: /completion, /completions, /infill.
//
// A frame is one object for one choice: `content`, `tokens_predicted` (exact, so far), `tokens_evaluated` (the whole
// prompt), `stop`. `tokens` holds one id even where several tokens became one text: the counter decides. The frame with
// "stop":true is the end; there is no [DONE].

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

Shape read_native(JsonFrame& frame, FrameFacts& facts) {
  ChoiceFacts choice;
  OpenAiTotals totals;
  std::optional<std::uint64_t> predicted;
  std::optional<std::uint64_t> evaluated;
  bool has_content = false;
  bool has_stop = false;
  bool foreign = false;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "content") {
      has_content = json_raw_string(value).has_value();
      read_text(value, choice);
    } else if (key == "index") {
      read_index(value, choice);
    } else if (key == "tokens_predicted") {
      predicted = json_count(value);
    } else if (key == "tokens_evaluated") {
      evaluated = json_count(value);
    } else if (key == "stop") {
      const auto stop = json_bool(value);
      has_stop = stop.has_value();
      choice.finished = stop.value_or(false);
    } else if (key == "tokens") {
      choice.ids = json_array_size(value);
    } else if (key == "timings") {
      read_timings(value, totals, facts);
    } else if (key == "completion_probabilities") {
      choice.logprobs = json_array_size(value);
    } else if (key == "error") {
      read_error(value, facts);
    } else if (key == "choices" || key == "message") {
      foreign = true;
    }
  });
  facts.damaged = facts.damaged || !whole;
  if (foreign) return Shape::kForeign;
  if (!has_content || !(has_stop || predicted)) return facts.error ? Shape::kNeutral : Shape::kForeign;
  if (predicted && *predicted != 0) choice.cumulative = predicted;
  // Progress of the prompt: nothing was generated, whatever the list holds.
  if (predicted && *predicted == 0) choice.ids = choice.logprobs = 0;
  if (!choice.cumulative) choice.cumulative = totals.timings_predicted;
  if (evaluated && *evaluated != 0) facts.prompt_tokens = evaluated;
  if (!facts.prompt_tokens) facts.prompt_tokens = totals.timings_prompt;
  facts.end_marker = choice.finished;
  facts.family = ServerFamily::kLlamaCpp;
  facts.choices.push_back(choice);
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 3> kRoutes = {DialectRoute{"/completion"}, DialectRoute{"/completions"},
                                                 DialectRoute{"/infill"}};

}  // namespace

constinit const Dialect kLlamaCppNativeDialect = {.name = "llamacpp_native", .routes = kRoutes, .read = read_native};

}  // namespace rooflined::tap
