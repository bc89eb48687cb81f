// Goal: a server that cannot send is told from one that has nothing to send, whatever part of the handshake was seen.

#include "collectors/tap/client_window.h"

#include "tests/support/catch.h"

namespace rooflined::tap {

TEST_CASE("a window of 0 is closed, with a scale or without", "[client_window]") {
  ClientWindow window;
  window.send(1000, 500);
  window.acknowledge(1000, 10);
  CHECK_FALSE(window.closed());  // 10 of what unit is not known
  window.acknowledge(1000, 0);
  CHECK(window.closed());
  window.acknowledge(1000, 1);
  CHECK_FALSE(window.closed());
}

TEST_CASE("a rest that holds no further segment is closed", "[client_window]") {
  ClientWindow window;
  window.set_scale(2);
  window.acknowledge(1000, 300);  // up to 2,200
  window.send(1500, 500);
  CHECK_FALSE(window.closed());
  window.send(2000, 500);
  CHECK(window.closed());
  window.acknowledge(2000, 124);
  CHECK(window.closed());
  window.acknowledge(2000, 125);
  CHECK_FALSE(window.closed());
}

TEST_CASE("what is repeated or out of order changes nothing", "[client_window]") {
  ClientWindow window;
  window.set_scale(0);
  window.acknowledge(0xffffff00, 300);
  window.send(0x10, 0x110);
  CHECK(window.closed());  // 28 of 300 bytes are left
  window.send(0xffffff80, 0x80);
  CHECK(window.closed());
  window.acknowledge(0x10, 1000);
  CHECK_FALSE(window.closed());
  window.acknowledge(0xffffff00, 0);
  CHECK_FALSE(window.closed());
}

TEST_CASE("a server that sends beyond the window has seen another one", "[client_window]") {
  ClientWindow window;
  window.set_scale(0);
  window.acknowledge(0, 1000);
  window.send(900, 900);
  CHECK(window.closed());
  window.send(1800, 900);
  CHECK_FALSE(window.closed());
  window.acknowledge(1800, 0);
  CHECK(window.closed());
  window.send(1900, 100);
  CHECK_FALSE(window.closed());
}

}  // namespace rooflined::tap
