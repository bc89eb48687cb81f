#include "collectors/model/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace rooflined::model {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::uint64_t size() const override { return size_; }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t got =
          ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  int descriptor_;
  std::uint64_t size_;
};

Error system_error(const std::string& path, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::kNotFound
                         : number == EACCES || number == EPERM ? ErrorCode::kDenied
                                                               : ErrorCode::kIo;
  return {code, path, std::generic_category().message(number)};
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return system_error(path, errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int number = errno;
    ::close(descriptor);
    return system_error(path, number);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return Error{ErrorCode::kUnsupported, path,
                 S_ISDIR(status.st_mode) ? "is a folder, should be a GGUF file" : "is not a regular file"};
  }
  return std::unique_ptr<ByteSource>(
      std::make_unique<FileSource>(descriptor, static_cast<std::uint64_t>(status.st_size)));
}

std::size_t MemorySource::read_at(std::uint64_t offset, std::span<std::byte> into) {
  if (offset >= bytes_.size()) return 0;
  const auto rest = bytes_.subspan(static_cast<std::size_t>(offset));
  const std::size_t count = std::min(rest.size(), into.size());
  if (count > 0) std::memcpy(into.data(), rest.data(), count);
  return count;
}

std::span<const std::byte> SourceReader::peek(std::size_t count) {
  if (!ok_ || count > left()) {
    ok_ = false;
    return {};
  }
  const bool inside = position_ >= piece_at_ && position_ - piece_at_ + count <= piece_.size();
  if (!inside) {
    piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, left())));
    piece_at_ = position_;
    piece_.resize(source_.read_at(position_, piece_));
    if (piece_.size() < count) {  // the file shrank under us, or cannot be read
      ok_ = false;
      return {};
    }
  }
  return std::span<const std::byte>(piece_).subspan(static_cast<std::size_t>(position_ - piece_at_), count);
}

std::uint64_t SourceReader::integer(std::size_t width) {
  const auto bytes = peek(width);
  std::uint64_t value = 0;
  if (order_ == ByteOrder::kBig) {
    for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  } else {
    for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
  }
  position_ += bytes.size();
  return value;
}

void SourceReader::skip(std::uint64_t count) {
  if (!ok_ || count > left()) {
    ok_ = false;
    return;
  }
  position_ += count;
}

std::string SourceReader::text(std::uint64_t count) {
  if (!ok_ || count > left()) {
    ok_ = false;
    return {};
  }
  std::string result;
  while (result.size() < count) {
    const auto bytes = peek(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, count - result.size())));
    if (bytes.empty()) return {};
    result.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    position_ += bytes.size();
  }
  return result;
}

}  // namespace rooflined::model
