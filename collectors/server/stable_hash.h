// A hash that is the same on every machine and in every build, for things that are compared between them.

#pragma once

#include <cstdint>
#include <string_view>

namespace rooflined::server {

// FNV-1a, 64 bits. Not against an adversary: who can choose the bytes can also choose the model.
class StableHash {
 public:
  void add_bytes(std::string_view bytes) {
    constexpr std::uint64_t kPrime = 0x100000001b3;
    for (const char c : bytes) value_ = (value_ ^ static_cast<unsigned char>(c)) * kPrime;
  }
  // Told apart from its neighbours: "ab", "c" is not "a", "bc".
  void add_text(std::string_view text) {
    add_bytes(text);
    add_bytes(std::string_view("\0", 1));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace rooflined::server
