// A file, or a part of it, as a sequence of characters for a SAX parser: read piece by piece, never whole.
//
// Thread rule: one thread at a time.

#pragma once

#include "collectors/model/byte_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace rooflined::model {

class JsonStream {
 public:
  // Between two events of a parser lies at most one string: longer ones end the stream, so that nobody buffers them.
  static constexpr std::uint64_t kQuietBytesMax = 4 * 1024 * 1024;

  // Requires: `source` outlives the stream, and offset + size ≤ source.size().
  JsonStream(ByteSource& source, std::uint64_t offset, std::uint64_t size)
      : source_(source), next_(offset), end_(offset + size), piece_(kPiece) {
    refill();
  }

  bool at_end() const noexcept { return at_ == size_; }
  char here() const noexcept { return static_cast<char>(piece_[at_]); }
  void advance() {
    if (++at_ == size_) refill();
  }
  // The parser has told of something: the quiet stretch is over.
  void heard() noexcept { quiet_ = 0; }

  // What nlohmann's parser takes as a pair of iterators. All copies share the stream's place.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    Iterator() = default;
    explicit Iterator(JsonStream& stream) : stream_(&stream) {}
    char operator*() const { return stream_->here(); }
    Iterator& operator++() {
      stream_->advance();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return done() == other.done(); }

   private:
    bool done() const { return stream_ == nullptr || stream_->at_end(); }
    JsonStream* stream_ = nullptr;
  };
  Iterator begin() { return Iterator(*this); }
  Iterator end() const { return Iterator(); }

 private:
  static constexpr std::size_t kPiece = 64 * 1024;

  void refill() {
    at_ = size_ = 0;
    quiet_ += kPiece;
    if (quiet_ > kQuietBytesMax || next_ >= end_) return;
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, end_ - next_));
    size_ = source_.read_at(next_, std::span(piece_).first(wanted));
    next_ += size_;
  }

  ByteSource& source_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::vector<std::byte> piece_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::uint64_t quiet_ = 0;
};

}  // namespace rooflined::model
