// Members of a JSON object that came from outside: a missing one, or one of another type, is as nothing, and never
// throws.

#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace rooflined::daemon {

// A member of the state; the state comes over a socket, so nothing of its shape is taken for granted.
inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

inline std::string text_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline double number_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

inline bool is_true(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

}  // namespace rooflined::daemon
