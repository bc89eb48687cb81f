#include "collectors/tap/http_inflate.h"

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace rooflined::tap {
namespace {

// Streams of events repeat their field names and shrink to a tenth to a fiftieth; deflate's limit is 1032.
constexpr std::uint64_t kRatioMax = 300;
constexpr std::uint64_t kRatioAppliesFrom = 1024 * 1024;

// zlib's memory with its size in front, so that it can be wiped.
voidpf allocate(voidpf, uInt items, uInt size) {
  const std::size_t bytes = static_cast<std::size_t>(items) * size;
  auto* block = static_cast<std::max_align_t*>(std::malloc(bytes + sizeof(std::max_align_t)));
  if (block == nullptr) return Z_NULL;
  std::memcpy(block, &bytes, sizeof bytes);
  return block + 1;
}

void wipe_and_free(voidpf, voidpf address) {
  auto* block = static_cast<std::max_align_t*>(address) - 1;
  std::size_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  explicit_bzero(address, bytes);
  std::free(block);
}

}  // namespace

struct Inflater::Stream {
  z_stream z{};
  bool open = false;
  std::array<char, 16 * 1024> out;

  Stream() {
    z.zalloc = allocate;
    z.zfree = wipe_and_free;
  }
  ~Stream() {
    if (open) inflateEnd(&z);
    explicit_bzero(out.data(), out.size());
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

Inflater::Inflater(Coding coding) : coding_(coding) {}
Inflater::~Inflater() = default;

bool Inflater::start(std::string_view bytes) {
  stream_ = std::make_unique<Stream>();
  int window_bits = 15 + 16;
  if (coding_ == Coding::kDeflate) {
    const auto first = static_cast<unsigned char>(bytes[0]);
    const auto second = static_cast<unsigned char>(bytes[1]);
    // A zlib header: method 8, and a multiple of 31 (RFC 1950 §2.2). Otherwise raw deflate.
    const bool wrapped = (first & 0x0f) == 8 && (first * 256 + second) % 31 == 0;
    window_bits = wrapped ? 15 : -15;
  }
  stream_->open = inflateInit2(&stream_->z, window_bits) == Z_OK;
  return stream_->open;
}

bool Inflater::feed(std::string_view bytes, const std::function<void(std::string_view)>& on_text) {
  if (failed_) return false;
  if (bytes.empty()) return true;
  if (!stream_) {
    if (!holds_byte_ && bytes.size() == 1) {
      held_byte_ = bytes[0];
      holds_byte_ = true;
      return true;
    }
    const std::array<char, 2> first = {holds_byte_ ? held_byte_ : bytes[0], holds_byte_ ? bytes[0] : bytes[1]};
    failed_ = !start({first.data(), first.size()});
    if (failed_) return false;
    if (holds_byte_ && !feed({first.data(), 1}, on_text)) return false;
  }
  z_stream& z = stream_->z;
  // zlib's interface is not const-correct; it does not write here.
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  bytes_in_ += bytes.size();
  while (true) {
    z.next_out = reinterpret_cast<Bytef*>(stream_->out.data());
    z.avail_out = static_cast<uInt>(stream_->out.size());
    const int code = inflate(&z, Z_SYNC_FLUSH);
    const std::size_t made = stream_->out.size() - z.avail_out;
    bytes_out_ += made;
    if (made != 0) on_text({stream_->out.data(), made});
    failed_ = (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) ||
              (bytes_out_ > kRatioAppliesFrom && bytes_out_ / kRatioMax > bytes_in_);
    if (failed_) return false;
    // A gzip body may hold several members (RFC 1952 §2.2).
    if (code == Z_STREAM_END) {
      if (z.avail_in == 0) return true;
      failed_ = inflateReset(&z) != Z_OK;
      if (failed_) return false;
      continue;
    }
    if (z.avail_out != 0 || code == Z_BUF_ERROR) return true;
  }
}

}  // namespace rooflined::tap
