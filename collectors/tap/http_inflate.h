// Takes a gzip or deflate coding off a body, piece by piece.
//
// Output comes in pieces of at most 16 KiB. A body that swells beyond any text (a bomb) ends the work. zlib's own
// memory held text, so it is wiped before it is freed. Thread: one.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace rooflined::tap {

class Inflater {
 public:
  enum class Coding : std::uint8_t { kGzip, kDeflate };

  explicit Inflater(Coding coding);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Calls `on_text` for each piece. False: the body is damaged or a bomb; later calls do nothing and say false again.
  bool feed(std::string_view bytes, const std::function<void(std::string_view)>& on_text);

 private:
  struct Stream;
  bool start(std::string_view bytes);

  Coding coding_;
  bool failed_ = false;
  // `deflate` means zlib's wrapper, but some senders leave it off: two bytes tell.
  char held_byte_ = 0;
  bool holds_byte_ = false;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  std::unique_ptr<Stream> stream_;
};

}  // namespace rooflined::tap
