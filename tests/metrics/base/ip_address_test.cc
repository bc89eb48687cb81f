#include "metrics/base/ip_address.h"

#include "tests/support/catch.h"

using rooflined::IpAddress;
using rooflined::is_loopback;

TEST_CASE("loopback is 127.0.0.0/8 and ::1") {
  const auto v4 = [](std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return IpAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a, b, c, d};
  };
  CHECK(is_loopback(v4(127, 0, 0, 1)));
  CHECK(is_loopback(v4(127, 255, 255, 254)));
  CHECK(is_loopback(IpAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  CHECK_FALSE(is_loopback(v4(128, 0, 0, 1)));
  CHECK_FALSE(is_loopback(v4(10, 0, 0, 127)));
  CHECK_FALSE(is_loopback(IpAddress{}));
  CHECK_FALSE(is_loopback(IpAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1}));
  CHECK_FALSE(is_loopback(IpAddress{0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}
