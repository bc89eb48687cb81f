#include "daemon/mark_request.h"

#include "metrics/base/utf8.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace rooflined::daemon {
namespace {

using nlohmann::json;

std::string line_of(const json& object) {
  return object.dump(-1, ' ', true, json::error_handler_t::replace);
}

Result<json> object_of(std::string_view line) {
  if (line.size() > kMarkLineBytesMax) return Error{ErrorCode::kLimit, "", "a line too long"};
  json object = json::parse(line, nullptr, false);
  if (!object.is_object()) return Error{ErrorCode::kInvalid, "", "not a line with a JSON object"};
  return object;
}

// Empty where it is not there or no text.
std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return to_label(found->get_ref<const std::string&>());
}

}  // namespace

std::string mark_line(const Mark& mark) {
  return line_of({{"target", mark.target}, {"version", mark.version}, {"accept", mark.accept}});
}

std::string mark_answer_line(const MarkAnswer& answer) {
  if (!answer.error.empty()) return line_of({{"error", answer.error}});
  return line_of({{"generation", answer.generation}});
}

Result<Mark> parse_mark(std::string_view line) {
  const auto object = object_of(line);
  if (!object) return object.error();
  Mark mark{text_of(*object, "target"), text_of(*object, "version"), false};
  if (mark.target.empty()) return Error{ErrorCode::kInvalid, "", "a mark needs a \"target\""};
  const auto accept = object->find("accept");
  mark.accept = accept != object->end() && *accept == true;
  return mark;
}

Result<MarkAnswer> parse_mark_answer(std::string_view line) {
  const auto object = object_of(line);
  if (!object) return object.error();
  MarkAnswer answer;
  answer.error = text_of(*object, "error");
  const auto generation = object->find("generation");
  const bool done = generation != object->end() && generation->is_number_unsigned();
  if (done) answer.generation = generation->get<std::uint64_t>();
  if (!done && answer.error.empty()) return Error{ErrorCode::kInvalid, "", "neither a generation nor an error"};
  return answer;
}

}  // namespace rooflined::daemon
