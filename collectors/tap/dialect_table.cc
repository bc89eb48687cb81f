#include "collectors/tap/dialect_table.h"

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_request.h"
#include "collectors/tap/json_reader.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rooflined::tap {
namespace {

// In the order in which they are tried on a frame of unknown origin.
constexpr std::array<const Dialect*, 11> kDialects = {
    &kOpenAiChatDialect, &kOpenAiCompletionsDialect, &kLlamaCppNativeDialect, &kOllamaDialect,
    &kAnthropicDialect,  &kResponsesDialect,         &kSglangNativeDialect,   &kTgiDialect,
    &kKoboldDialect,     &kLmStudioDialect,          &kTritonDialect,
};

// Whole answers to a list of prompts come as an array.
constexpr std::size_t kDocumentsMax = 1024;

// A damaged frame is looked at from so many of its fields on, and only if it is of ordinary size.
constexpr std::size_t kFieldsTriedMax = 16;
constexpr std::size_t kDamagedBytesMax = 16 * 1024;

bool bears_tokens(const FrameFacts& facts) {
  return std::any_of(facts.choices.begin(), facts.choices.end(), [](const ChoiceFacts& choice) {
    return choice.has_text || choice.cumulative || choice.ids != 0 || choice.logprobs != 0;
  });
}

}  // namespace

std::span<const Dialect* const> dialects() {
  return kDialects;
}

RouteFit dialect_of_route(std::string_view path) {
  RouteFit best;
  std::size_t best_size = 0;
  for (const Dialect* dialect : kDialects) {
    for (const DialectRoute& route : dialect->routes) {
      const std::size_t size = route.path_end.size() + route.path_part.size();
      if (size <= best_size || !path.ends_with(route.path_end)) continue;
      const std::string_view front = path.substr(0, path.size() - route.path_end.size());
      if (front.find(route.path_part) == std::string_view::npos) continue;
      best = {dialect, route.streamed};
      best_size = size;
    }
  }
  return best;
}

struct DialectReader::Json {
  JsonReader reader;
  JsonFrame frame;
  TextBudget budget;
  TextBuffer mended{budget};  // a text that broke off, with an end
};

DialectReader::DialectReader() : json_(std::make_unique<Json>()) {}
DialectReader::~DialectReader() = default;

// Reads json_->frame by `dialect` first, then by all others until one owns it or nothing speaks against it.
Reading DialectReader::try_dialects(const Dialect*& dialect) {
  const Dialect* const named = dialect;
  bool untouched = true;
  const auto read = [&](const Dialect& candidate) {
    facts_.clear();
    bool empty = false;
    const bool at_start = untouched || json_->frame.object.reset().get(empty) == simdjson::SUCCESS;
    untouched = false;
    const Shape shape = at_start ? candidate.read(json_->frame, facts_) : Shape::kForeign;
    damaged_ = damaged_ || facts_.damaged;
    return shape;
  };
  Shape shape = named != nullptr ? read(*named) : Shape::kForeign;
  for (const Dialect* other : kDialects) {
    if (shape != Shape::kForeign) break;
    if (other == named) continue;
    shape = read(*other);
    if (shape == Shape::kOwn) dialect = other;
  }
  damaged_ = damaged_ && !bears_tokens(facts_);
  if (shape == Shape::kOwn) return Reading::kOwn;
  if (shape == Shape::kNeutral) return Reading::kNeutral;
  facts_.clear();
  return Reading::kUnknown;
}

Reading DialectReader::read_frame(std::string_view text, std::size_t readable_after, const Dialect*& dialect) {
  facts_.clear();
  damaged_ = false;
  auto* document = json_->reader.open(text, readable_after);
  Reading reading = Reading::kNoJson;
  if (document != nullptr && document->get_object().get(json_->frame.object) == simdjson::SUCCESS) {
    reading = try_dialects(dialect);
    place_text();
    // A brace too many ends the object, and its other fields stand behind it.
    damaged_ = damaged_ || (reading == Reading::kUnknown && document->current_location().error() == simdjson::SUCCESS);
  } else {
    damaged_ = text.starts_with('{');
  }
  cleaned_ = json_->reader.cleaned();
  json_->reader.close();
  return reading;
}

void DialectReader::place_text() {
  if (facts_.choices.size() != 1) return;
  ChoiceFacts& choice = facts_.choices.front();
  const std::string_view text = std::exchange(choice.text, {});
  if (text.empty()) return;
  const auto place = json_->reader.place_of(text);
  if (!place) return;
  facts_.text_at = *place;
  facts_.text_size = text.size();
}

// Reads start + text + end. kOwn only where a token is in it.
Reading DialectReader::read_mended(std::string_view start, std::string_view text, std::string_view end,
                                   const Dialect*& dialect) {
  TextBuffer& mended = json_->mended;
  constexpr std::size_t kRoom = kDamagedBytesMax + 8;
  mended.clear();
  if (!mended.append(start, kRoom) || !mended.append(text, kRoom) || !mended.append(end, kRoom))
    return Reading::kNoJson;
  const Dialect* found = dialect;
  if (read_frame(mended.view(), TextBuffer::kPadding, found) != Reading::kOwn || !bears_tokens(facts_)) {
    return Reading::kNoJson;
  }
  dialect = found;
  facts_.damaged = true;
  return Reading::kOwn;
}

Reading DialectReader::read_damaged(std::string_view text, const Dialect*& dialect) {
  if (text.size() > kDamagedBytesMax) return Reading::kNoJson;
  // Its end is broken: inside a string, or not.
  Reading reading = read_mended("", text, "}", dialect);
  if (reading != Reading::kOwn) reading = read_mended("", text, "\"}", dialect);
  // Something in front of its tokens is broken: each field in turn is taken for the first.
  constexpr std::string_view kFieldStart = ",\"";
  std::size_t field = text.find(kFieldStart);
  for (std::size_t i = 0; i < kFieldsTriedMax && reading != Reading::kOwn && field != std::string_view::npos; ++i) {
    const std::string_view rest = text.substr(field + 1);
    reading = read_mended("{", rest, "", dialect);
    if (reading != Reading::kOwn) reading = read_mended("{", rest, "\"}", dialect);
    field = text.find(kFieldStart, field + 1);
  }
  json_->mended.release();
  if (reading != Reading::kOwn) facts_.clear();
  return reading;
}

Reading DialectReader::read_document(std::string_view text, std::size_t readable_after, const Dialect*& dialect) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] != '[') return read_frame(text, readable_after, dialect);
  auto* document = json_->reader.open(text, readable_after);
  simdjson::ondemand::array array;
  Reading reading = Reading::kNoJson;
  FrameFacts sum;
  if (document != nullptr && document->get_array().get(array) == simdjson::SUCCESS) {
    reading = Reading::kUnknown;
    std::size_t items = 0;
    for (auto item : array) {
      if (item.get_object().get(json_->frame.object) != simdjson::SUCCESS || ++items > kDocumentsMax) break;
      if (try_dialects(dialect) != Reading::kOwn) continue;
      reading = Reading::kOwn;
      for (const ChoiceFacts& choice : facts_.choices) {
        const auto same = [&](const ChoiceFacts& known) { return known.index == choice.index; };
        const bool taken = std::any_of(sum.choices.begin(), sum.choices.end(), same);
        const auto place = static_cast<std::uint32_t>(sum.choices.size());
        ChoiceFacts* added = sum.add_choice();
        if (added == nullptr) break;
        *added = choice;
        // Items that do not say which they are stand in their order.
        if (taken) added->index = place;
        if (facts_.choices.size() > 1) continue;
        added->draft_tokens = facts_.draft_tokens;
        added->draft_tokens_accepted = facts_.draft_tokens_accepted;
      }
      if (facts_.prompt_tokens) sum.prompt_tokens = sum.prompt_tokens.value_or(0) + *facts_.prompt_tokens;
      sum.family = facts_.family;
      sum.error = sum.error || facts_.error;
    }
  }
  facts_ = sum;
  cleaned_ = json_->reader.cleaned();
  json_->reader.close();
  return reading;
}

std::optional<RequestFacts> DialectReader::read_request(std::string_view text, std::size_t readable_after,
                                                        bool streamed) {
  std::optional<RequestFacts> facts;
  auto* document = json_->reader.open(text, readable_after);
  if (document != nullptr && document->get_object().get(json_->frame.object) == simdjson::SUCCESS) {
    facts = read_request_body(json_->frame, streamed);
  }
  json_->reader.close();
  return facts;
}

std::optional<RequestFacts> DialectReader::read_request_start(std::string_view text, bool streamed) {
  std::optional<RequestFacts> facts;
  // Broken off in the middle of a string, or outside of all.
  for (const std::string_view end : {"\"}", "}"}) {
    json_->mended.clear();
    if (facts || !json_->mended.append(text, text.size()) || !json_->mended.append(end, text.size() + end.size()))
      break;
    facts = read_request(json_->mended.view(), TextBuffer::kPadding, streamed);
  }
  json_->mended.release();
  return facts;
}

}  // namespace rooflined::tap
