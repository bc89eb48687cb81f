#include "daemon/state_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

namespace rooflined::daemon {
namespace {

Error io_error(const std::string& path) {
  return Error{ErrorCode::kIo, path, std::strerror(errno)};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status write_text(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error(path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return io_error(path);
  return ok_status();
}

// Anyone but root cannot hand a file over, and need not.
Status hand_to_owner_of(int folder, int file, const std::string& path) {
  struct stat owner {};
  if (::geteuid() != 0 || ::fstat(folder, &owner) != 0) return ok_status();
  if (::fchown(file, owner.st_uid, owner.st_gid) != 0) return io_error(path);
  return ok_status();
}

Status write_new(int folder, const std::string& path, std::string_view text) {
  // What a killed program left behind may belong to another user.
  ::unlink(path.c_str());
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (file.get() < 0) return io_error(path);
  if (Status handed = hand_to_owner_of(folder, file.get(), path); !handed.ok()) return handed;
  return write_text(file.get(), path, text);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) return Error{ErrorCode::kNotFound, path, "no such file"};
    return io_error(path);
  }
  std::string text;
  std::string piece(std::size_t{64} * 1024, '\0');
  while (text.size() <= bytes_max) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path);
    if (got == 0) return text;
    text.append(piece, 0, static_cast<std::size_t>(got));
  }
  return Error{ErrorCode::kLimit, path, "larger than any state of ours"};
}

Status replace_file(const std::string& path, std::string_view text) {
  const std::string folder_path = folder_of(path);
  const std::string new_path = path + ".new";
  const Descriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return io_error(folder_path);
  if (Status written = write_new(folder.get(), new_path, text); !written.ok()) {
    ::unlink(new_path.c_str());
    return written;
  }
  if (::rename(new_path.c_str(), path.c_str()) != 0) return io_error(path);
  if (::fsync(folder.get()) != 0) return io_error(folder_path);
  return ok_status();
}

Result<FileLock> FileLock::take(const std::string& path, Duration patience) {
  // Only for its owner: whoever may open it may keep it locked.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return io_error(path);
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (Status handed = hand_to_owner_of(folder.get(), file.get(), path); !handed.ok()) return handed.error();
  constexpr Duration kPause = std::chrono::milliseconds(10);
  for (Duration waited{0}; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; waited += kPause) {
    if (errno != EWOULDBLOCK && errno != EINTR) return io_error(path);
    if (waited >= patience) return Error{ErrorCode::kBusy, path, "another program holds the lock"};
    std::this_thread::sleep_for(kPause);
  }
  return FileLock(file.release());
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace rooflined::daemon
