// Reads a file that somebody else shapes, and that may tell no length (procfs): never more than a bound.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string>

namespace rooflined {

// The first `bytes_max` bytes of a file, or all of it; empty where it cannot be read. A pipe or a device can make it
// wait.
inline std::string read_file_start(const std::string& path, std::size_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 16'384> piece{};
  while (file && text.size() < bytes_max) {
    const std::size_t wanted = std::min(piece.size(), bytes_max - text.size());
    file.read(piece.data(), static_cast<std::streamsize>(wanted));
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  return text;
}

}  // namespace rooflined
