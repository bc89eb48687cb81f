// SGLang's own route /generate, and LMDeploy's of the same shape: `text` and `meta_info`.
//
// meta_info.completion_tokens is exact and cumulative. `text` and `output_ids` are all of the answer so far with SGLang
// (unless it runs with --incremental-streaming-output) and only the new part with LMDeploy: the ids tell which, where
// they are there. They are never counted.

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_table.h"

#include <array>

namespace rooflined::tap {
namespace {

struct MetaInfo {
  bool present = false;
  std::optional<std::uint64_t> verify_passes;
};

// An object with a `type`; a string with some versions.
void read_finish(JsonValue& value, ChoiceFacts& choice, FrameFacts& facts) {
  if (json_raw_string(value)) {
    read_finish_reason(value, choice, facts);
    return;
  }
  json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "type") read_finish_reason(field, choice, facts);
  });
}

MetaInfo read_meta_info(JsonValue& value, ChoiceFacts& choice, FrameFacts& facts) {
  MetaInfo meta;
  meta.present = json_each_field_of(value, [&](std::string_view key, JsonValue& field) {
    if (key == "completion_tokens") {
      choice.cumulative = positive(json_count(field));
    } else if (key == "prompt_tokens") {
      facts.prompt_tokens = positive(json_count(field));
    } else if (key == "finish_reason") {
      read_finish(field, choice, facts);
    } else if (key == "id") {
      facts.family = ServerFamily::kSglang;
      read_response_id(field, facts);
    } else if (key == "spec_verify_ct") {
      meta.verify_passes = json_count(field);
    } else if (key == "spec_num_proposed_drafts") {
      facts.draft_tokens = json_count(field);
    } else if (key == "spec_num_correct_drafts") {
      facts.draft_tokens_accepted = json_count(field);
    }
  });
  return meta;
}

Shape read_sglang(JsonFrame& frame, FrameFacts& facts) {
  ChoiceFacts choice;
  MetaInfo meta;
  bool has_text = false;
  bool foreign = false;
  std::optional<std::uint32_t> ids;
  const bool whole = json_each_field(frame.object, [&](std::string_view key, JsonValue& value) {
    if (key == "text") {
      has_text = json_raw_string(value).has_value();
      read_text(value, choice);
    } else if (key == "output_ids") {
      ids = json_array_size(value);
    } else if (key == "index") {
      read_index(value, choice);
    } else if (key == "meta_info") {
      meta = read_meta_info(value, choice, facts);
    } else if (key == "error") {
      read_error(value, facts);
    } else if (key == "choices") {
      foreign = true;
    }
  });
  facts.damaged = facts.damaged || !whole;
  if (foreign) return Shape::kForeign;
  if (!meta.present || !(has_text || ids)) return facts.error ? Shape::kNeutral : Shape::kForeign;
  choice.text_so_far = !ids || ids == choice.cumulative;
  // Every verifying pass brings one token besides the accepted drafts, and the first token comes from the prompt's
  // pass.
  if (meta.verify_passes && !facts.draft_tokens_accepted && choice.cumulative) {
    const std::uint64_t decoded = *choice.cumulative - 1;
    if (*meta.verify_passes <= decoded) facts.draft_tokens_accepted = decoded - *meta.verify_passes;
    facts.draft_tokens = facts.draft_tokens_accepted;
  }
  facts.choices.push_back(choice);
  return Shape::kOwn;
}

constexpr std::array<DialectRoute, 1> kRoutes = {DialectRoute{"/generate"}};

}  // namespace

constinit const Dialect kSglangNativeDialect = {.name = "sglang_native", .routes = kRoutes, .read = read_sglang};

}  // namespace rooflined::tap
