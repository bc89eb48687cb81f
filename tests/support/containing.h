// CHECK(text == containing("part")): the same with either version of Catch2, and prints both on failure.

#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace rooflined::test {

struct Containing {
  std::string part;
};
inline Containing containing(std::string_view part) {
  return {std::string(part)};
}
inline bool operator==(std::string_view text, const Containing& wanted) {
  return text.find(wanted.part) != std::string_view::npos;
}
inline std::ostream& operator<<(std::ostream& out, const Containing& wanted) {
  return out << "something with \"" << wanted.part << '"';
}

}  // namespace rooflined::test
