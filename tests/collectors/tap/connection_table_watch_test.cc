// Goal: what is watched can change while connections are open, and a client that does not read is told of.

#include "tests/collectors/tap/table_fixture.h"
#include "tests/support/catch.h"

namespace rooflined::tap {

TEST_CASE("the handler is told when the client's window closes and opens", "[connection_table]") {
  Fixture f;
  f.window_scale = 7;
  f.handshake(1);
  f.window_scale.reset();
  f.window = 8;  // 1,024 bytes
  f.up(2, 0, "ask");
  const std::string frame(500, 'x');
  f.down(3, 0, frame, kAck, 3);
  f.down(4, 500, frame, kAck, 3);  // 24 bytes are left
  f.window = 0;
  f.up(5, 3, "", kAck, 1000);
  f.window = 8;
  f.up(9, 3, "", kAck, 1000);
  const auto& events = f.factory.records.at(0)->events;
  REQUIRE(events.size() == 5);
  CHECK(events[2] == "window closed 4");
  CHECK(events[4] == "window open 9");
}

TEST_CASE("flows outside the share are counted and not followed, and come back with it", "[connection_table]") {
  Fixture f;
  // 40000 and 8080 make a sum whose half is even: in the share of 2; 40002 is not.
  const Endpoint other = test::ipv4(10, 0, 0, 1, 40002);
  REQUIRE(in_share(40000, 8080, 2));
  REQUIRE_FALSE(in_share(40002, 8080, 2));
  f.up(1, 0, "one");
  f.segment(1, other, kServer, 1, 1, kAck, "two");
  REQUIRE(f.factory.records.size() == 2);
  Watch watch{.ports = f.ports, .left_out = {}, .one_in = 2};
  f.table.set_watch(watch, line_ms(2));
  CHECK(f.table.counters().ignored_governor == 1);
  CHECK_FALSE(f.factory.records[0]->closed);
  CHECK(f.factory.records[1]->closed);
  f.segment(3, other, kServer, 4, 1, kAck, "more");
  f.segment(3, test::ipv4(10, 0, 0, 2, 40002), kServer, 1, 0, kSyn);
  CHECK(f.factory.records.size() == 2);
  CHECK(f.table.counters().ignored_governor == 2);
  watch.one_in = 1;
  f.table.set_watch(watch, line_ms(4));
  f.up(5, 3, "goes on");
  f.segment(5, other, kServer, 8, 1, kAck, "is back");
  REQUIRE(f.factory.records.size() == 3);
  CHECK(f.factory.records[2]->to_server == "is back");
  CHECK(f.factory.records[0]->to_server == "onegoes on");
}

TEST_CASE("each connection to a server that is left out is counted, and found again afterwards", "[connection_table]") {
  Fixture f;
  const Endpoint site = test::ipv4(10, 0, 0, 2, 8000);
  const auto ask = [&](std::int64_t ms, int client_port) {
    f.segment(ms, test::ipv4(10, 0, 0, 1, static_cast<std::uint16_t>(client_port)), site, 1, 1, kAck, "ask");
  };
  f.up(1, 0, "engine");
  for (const int port : {40000, 40001}) ask(1, port);
  REQUIRE(f.factory.records.size() == 3);
  f.table.set_watch({.ports = f.ports, .left_out = {site}}, line_ms(2));
  CHECK(f.table.counters().ignored_left_out == 2);
  CHECK_FALSE(f.factory.records[0]->closed);
  CHECK((f.factory.records[1]->closed && f.factory.records[2]->closed));
  for (const int port : {40000, 40002}) ask(3, port);
  CHECK(f.table.counters().ignored_left_out == 3);
  CHECK(f.table.open_connections() == 1);
  f.table.set_watch({.ports = f.ports, .left_out = {}}, line_ms(4));
  for (const int port : {40000, 40002}) ask(5, port);
  CHECK(f.factory.records.size() == 5);
  CHECK(f.table.counters().ignored_governor == 0);
}

TEST_CASE("a port can be added", "[connection_table]") {
  Fixture f;
  const Endpoint child = test::ipv4(127, 0, 0, 1, 41234);
  f.segment(1, kClient, child, 1, 1, kAck, "nobody");
  f.ports.push_back(41234);
  f.table.set_watch({.ports = f.ports, .left_out = {}}, line_ms(2));
  f.segment(3, kClient, child, 7, 1, kAck, "hello");
  REQUIRE(f.factory.records.size() == 1);
  CHECK(f.factory.records[0]->to_server == "hello");
}

}  // namespace rooflined::tap
