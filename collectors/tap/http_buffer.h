// Holds text of requests and responses for as long as it must wait for the rest of it, and leaves nothing behind.
//
// Every byte that is dropped, moved or freed is overwritten first: prompts and answers must not linger in memory.
// Bounded by the `bytes_max` of each append, and by the budget that all buffers share. Thread: one.

#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace rooflined::tap {

// The room of all buffers together. Who waits for a whole answer of megabytes leaves half of it to heads and ordinary
// frames.
struct TextBudget {
  static constexpr std::size_t kLarge = 64 * 1024;

  std::size_t held = 0;
  std::size_t held_max = 32 * 1024 * 1024;

  bool has_room(std::size_t bytes) const noexcept {
    const std::size_t most = bytes > kLarge ? held_max / 2 : held_max;
    return bytes <= most && held <= most - bytes;
  }
};

class TextBuffer {
 public:
  // What simdjson may read behind the text.
  static constexpr std::size_t kPadding = 64;

  // Requires: `budget` outlives the buffer.
  explicit TextBuffer(TextBudget& budget) noexcept : budget_(&budget) {}
  ~TextBuffer() { release(); }
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  TextBuffer(TextBuffer&& other) noexcept
      : budget_(other.budget_),
        block_(std::move(other.block_)),
        capacity_(std::exchange(other.capacity_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  TextBuffer& operator=(TextBuffer&& other) noexcept {
    if (this != &other) {
      release();
      budget_ = other.budget_;
      block_ = std::move(other.block_);
      capacity_ = std::exchange(other.capacity_, 0);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }

  std::string_view view() const noexcept { return {block_.get(), size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  // False, and nothing is taken, where the text would grow over `bytes_max`, or there is no room.
  [[nodiscard]] bool append(std::string_view text, std::size_t bytes_max) {
    if (text.size() > bytes_max || size_ > bytes_max - text.size()) return false;
    if (text.empty()) return true;
    if (size_ + text.size() > capacity_ && !grow(size_ + text.size())) return false;
    std::memcpy(block_.get() + size_, text.data(), text.size());
    size_ += text.size();
    return true;
  }

  // Forgets all but the last `bytes`.
  void keep_last(std::size_t bytes) noexcept {
    if (size_ <= bytes) return;
    const std::size_t dropped = size_ - bytes;
    std::memmove(block_.get(), block_.get() + dropped, bytes);
    explicit_bzero(block_.get() + bytes, dropped);
    size_ = bytes;
  }

  // Wipes the text and keeps the room.
  void clear() noexcept {
    if (size_ != 0) explicit_bzero(block_.get(), size_);
    size_ = 0;
  }

  // Wipes the text and gives the room back.
  void release() noexcept {
    clear();
    block_.reset();
    budget_->held -= capacity_;
    capacity_ = 0;
  }

 private:
  bool grow(std::size_t wanted) {
    std::size_t capacity = capacity_ == 0 ? 1024 : capacity_ * 2;
    if (capacity < wanted) capacity = wanted;
    if (!budget_->has_room(capacity)) return false;  // the old block is there until the new one is filled
    // make_unique zeroes it: the padding is readable and holds nothing.
    auto block = std::make_unique<char[]>(capacity + kPadding);
    if (size_ != 0) {
      std::memcpy(block.get(), block_.get(), size_);
      explicit_bzero(block_.get(), size_);
    }
    block_ = std::move(block);
    budget_->held += capacity - capacity_;
    capacity_ = capacity;
    return true;
  }

  TextBudget* budget_;
  std::unique_ptr<char[]> block_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace rooflined::tap
