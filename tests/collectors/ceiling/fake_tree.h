// A fake root with files of /proc and /sys, for as long as the object lives.

#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace rooflined::ceiling {

class FakeTree {
 public:
  explicit FakeTree(const std::map<std::string, std::string>& files = {}) {
    std::string pattern = (std::filesystem::temp_directory_path() / "rooflined-tree-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    for (const auto& [path, text] : files) write(path, text);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace rooflined::ceiling
