// The JSON of frames, whole answers and requests, in every dialect. Counts must stay within what the text can hold.

#include "collectors/tap/dialect_table.h"
#include "collectors/tap/http_buffer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined::tap;
  static DialectReader reader;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [&] {
    for (const ChoiceFacts& choice : reader.facts().choices) {
      // Once for each of the fields that may hold the same text.
      if (choice.characters > size || choice.ids > size || choice.logprobs > size) std::abort();
    }
  };
  for (const Dialect* named : dialects()) {
    const Dialect* dialect = named;
    reader.read_frame(text, 0, dialect);
    check();
    dialect = named;
    reader.read_document(text, 0, dialect);
    check();
    reader.read_request(text, 0, false);
    reader.read_request_start(text, false);
  }
  // Without a copy: the text lies in front of readable bytes.
  const auto padded = std::make_unique<char[]>(size + TextBuffer::kPadding);
  if (size != 0) std::memcpy(padded.get(), data, size);
  const Dialect* dialect = nullptr;
  reader.read_frame({padded.get(), size}, TextBuffer::kPadding, dialect);
  check();
  return 0;
}
