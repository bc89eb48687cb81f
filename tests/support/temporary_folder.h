// A folder of its own, gone with the object.

#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace rooflined {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // mkdtemp(3) wants six of these at the end, and puts its own characters in their place.
    std::string pattern = (std::filesystem::temp_directory_path() / "rooflined-test-").string() + std::string(6, 'X');
    if (::mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::generic_category(), pattern);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ + "/" + name) << text; }
  std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path_ + "/" + name).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

}  // namespace rooflined
