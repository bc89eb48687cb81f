// What tells one state of a file from another without reading it: whether it was written, replaced, or is reached by
// another link than before. Threads: any.

#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

namespace rooflined {

// All zero where there is no file.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t changed_ns = 0;
  off_t size = 0;

  bool operator==(const FileStamp&) const = default;
};

inline FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return FileStamp();
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  return FileStamp{status.st_dev, status.st_ino, status.st_ctim.tv_sec * kNanosecondsPerSecond + status.st_ctim.tv_nsec,
                   status.st_size};
}

}  // namespace rooflined
