// Random access to the bytes of a model file, and a small buffered reader over it.
//
// A model file has tens of gigabytes and its header a few megabytes: nothing is mapped or read whole, pieces of 64 KiB
// are. Thread rule: one thread at a time.

#pragma once

#include "metrics/base/byte_reader.h"
#include "metrics/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rooflined::model {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  virtual std::uint64_t size() const = 0;
  // Fills `into` from `offset` on; returns how many bytes there were. Less than asked for: the end, or a read error.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
};

// A regular file, opened for reading. Anything else by that name (a FIFO, a device, a folder) is refused, and never
// blocks: names of model files come from servers.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);

// Requires: `bytes` outlive it.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override;

 private:
  std::span<const std::byte> bytes_;
};

// Reads integers and strings one after the other. After the first read past the end every later one gives 0 or nothing
// and ok() stays false, so that a caller may check once per record.
class SourceReader {
 public:
  // Requires: `source` outlives the reader.
  explicit SourceReader(ByteSource& source) : source_(source), size_(source.size()) {}

  void set_order(ByteOrder order) { order_ = order; }
  bool ok() const noexcept { return ok_; }
  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t left() const noexcept { return size_ - position_; }

  // An integer of `width` bytes, at most 8.
  std::uint64_t integer(std::size_t width);
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  void skip(std::uint64_t count);
  // Requires: count ≤ a bound of the caller's own; nothing is allocated for bytes that are not there.
  std::string text(std::uint64_t count);

 private:
  // At least `count` buffered bytes at the position, or an empty span and !ok(). Requires: count ≤ kPiece.
  std::span<const std::byte> peek(std::size_t count);

  static constexpr std::size_t kPiece = 64 * 1024;

  ByteSource& source_;
  std::uint64_t size_;
  std::uint64_t position_ = 0;
  bool ok_ = true;
  ByteOrder order_ = ByteOrder::kLittle;
  std::vector<std::byte> piece_;
  std::uint64_t piece_at_ = 0;
};

}  // namespace rooflined::model
