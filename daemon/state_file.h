// A small file that programs share: read whole, replaced whole, by one at a time.
//
// A replacement is atomic and fsynced: at any instant, kill -9 and a full disk included, the file is the old one or the
// new one. Between reading and replacing a FileLock keeps other programs out, so nobody's change is lost. Threads: any;
// a lock keeps other threads out, too.

#pragma once

#include "metrics/base/file_stamp.h"
#include "metrics/base/result.h"
#include "metrics/base/time.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace rooflined::daemon {

// Errors: kNotFound, kLimit where it holds more than `bytes_max`, kIo.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max);

// By way of PATH.new. Root hands the file to the owner of the folder, which is the daemon's user.
Status replace_file(const std::string& path, std::string_view text);

// An flock(2) on a file beside the one that is meant, for as long as the object lives. The kernel drops it with the
// process.
class FileLock {
 public:
  // Errors: kIo (a folder that cannot be written, say), kBusy when another program holds it for longer than `patience`.
  static Result<FileLock> take(const std::string& path, Duration patience);
  FileLock(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace rooflined::daemon
