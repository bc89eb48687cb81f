// Stream sockets on this host only (unix(7)), a line each way.
//
// Blocking calls with a limit of time for each line. Threads: any, one per object.

#pragma once

#include "metrics/base/result.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace rooflined::daemon {

// A listening descriptor of mode 0660 at `path`. What a killed program left there is replaced; one that still listens
// is an error.
Result<int> listen_locally(const std::string& path);
// A connection, or -1.
int accept_locally(int listener);
Result<int> connect_locally(const std::string& path);

class LocalConnection {
 public:
  explicit LocalConnection(int fd, std::chrono::milliseconds line_within = std::chrono::seconds(1));
  LocalConnection(const LocalConnection&) = delete;
  LocalConnection& operator=(const LocalConnection&) = delete;
  ~LocalConnection();

  // Without its end. Errors: kTruncated where none comes, kLimit where it is longer.
  Result<std::string> read_line(std::size_t bytes_max) const;
  Status write_line(std::string_view line) const;
  // Who is at the other end, in words: root, this program's user, or one of its group. An error: anyone else.
  Result<std::string> permitted_peer() const;

 private:
  int fd_;
  std::chrono::milliseconds line_within_;
};

}  // namespace rooflined::daemon
