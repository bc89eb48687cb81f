// A fake root with files of /proc and /sys, for as long as the object lives.

#pragma once

#include "tests/support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace rooflined::ceiling {

class FakeTree {
 public:
  explicit FakeTree(const std::map<std::string, std::string>& files = {}) {
    for (const auto& [path, text] : files) write(path, text);
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root() + path).parent_path());
    std::ofstream(root() + path) << text;
  }
  const std::string& root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace rooflined::ceiling
