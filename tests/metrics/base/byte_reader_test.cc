#include "metrics/base/byte_reader.h"

#include "tests/support/catch.h"

#include <array>

using namespace rooflined;

TEST_CASE("byte reader honours the order and the end") {
  const std::array<std::byte, 6> bytes = {std::byte{1}, std::byte{2}, std::byte{3},
                                          std::byte{4}, std::byte{5}, std::byte{6}};
  ByteReader big(bytes);
  CHECK(big.u16() == 0x0102);
  CHECK(big.u32() == 0x03040506);
  CHECK(big.ok());
  CHECK(big.u8() == 0);
  CHECK_FALSE(big.ok());

  ByteReader little(bytes, ByteOrder::kLittle);
  CHECK(little.u32() == 0x04030201);
  CHECK(little.u64() == 0);
  CHECK_FALSE(little.ok());
  CHECK(little.u8() == 0);
}

TEST_CASE("a length beyond the end takes nothing") {
  const std::array<std::byte, 2> bytes{};
  ByteReader reader(bytes);
  CHECK(reader.take(UINT64_MAX).empty());
  CHECK_FALSE(reader.ok());
}
