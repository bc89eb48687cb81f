#include "collectors/tap/dialect_table.h"

#include "collectors/tap/dialect_list.h"
#include "collectors/tap/dialect_openai.h"
#include "collectors/tap/dialect_request.h"
#include "collectors/tap/json_reader.h"

#include <array>

namespace rooflined::tap {
namespace {

// In the order in which they are tried on a frame of unknown origin.
constexpr std::array<const Dialect*, 3> kDialects = {
    &kOpenAiChatDialect,
    &kOpenAiCompletionsDialect,
    &kLlamaCppNativeDialect,
};

// Whole answers to a list of prompts come as an array.
constexpr std::size_t kDocumentsMax = 1024;

}  // namespace

std::span<const Dialect* const> dialects() {
  return kDialects;
}

const Dialect* dialect_of_route(std::string_view path) {
  const Dialect* best = nullptr;
  std::size_t best_size = 0;
  for (const Dialect* dialect : kDialects) {
    for (const std::string_view route : dialect->routes) {
      if (route.size() > best_size && path.ends_with(route)) {
        best = dialect;
        best_size = route.size();
      }
    }
  }
  return best;
}

struct DialectReader::Json {
  JsonReader reader;
  JsonFrame frame;
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
    return at_start ? candidate.read(json_->frame, facts_) : Shape::kForeign;
  };
  Shape shape = named != nullptr ? read(*named) : Shape::kForeign;
  for (const Dialect* other : kDialects) {
    if (shape != Shape::kForeign) break;
    if (other == named) continue;
    shape = read(*other);
    if (shape == Shape::kOwn) dialect = other;
  }
  if (shape == Shape::kOwn) return Reading::kOwn;
  if (shape == Shape::kNeutral) return Reading::kNeutral;
  facts_.clear();
  return Reading::kUnknown;
}

Reading DialectReader::read_frame(std::string_view text, std::size_t readable_after, const Dialect*& dialect) {
  facts_.clear();
  auto* document = json_->reader.open(text, readable_after);
  Reading reading = Reading::kNoJson;
  if (document != nullptr && document->get_object().get(json_->frame.object) == simdjson::SUCCESS) {
    reading = try_dialects(dialect);
  }
  cleaned_ = json_->reader.cleaned();
  json_->reader.close();
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
        if (ChoiceFacts* added = sum.add_choice()) *added = choice;
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
                                                        const Dialect& dialect) {
  std::optional<RequestFacts> facts;
  auto* document = json_->reader.open(text, readable_after);
  if (document != nullptr && document->get_object().get(json_->frame.object) == simdjson::SUCCESS) {
    facts = read_request_body(json_->frame, dialect.streamed_by_default);
  }
  json_->reader.close();
  return facts;
}

}  // namespace rooflined::tap
