// Goal: each connection has its own two streams, its beginning and its end, and costs little where nobody says
// anything.

#include "collectors/tap/connection_table.h"

#include "tests/collectors/tap/table_fixture.h"
#include "tests/support/catch.h"

namespace rooflined::tap {

namespace {

using Events = std::vector<std::string>;

}  // namespace

TEST_CASE("a connection from its first packet to its last", "[connection_table]") {
  Fixture f;
  f.handshake(1);
  CHECK(f.factory.records.empty());  // nobody has said anything yet
  f.up(2, 0, "ask");
  f.down(3, 0, "answer", kAck, 3);
  f.down(4, 6, "", kFin | kAck, 3);
  f.up(5, 3, "", kFin | kAck, 7);
  f.down(6, 7, "", kAck, 4);
  REQUIRE(f.factory.records.size() == 1);
  const auto& record = *f.factory.records[0];
  CHECK(record.events == Events{"up 2 ask", "down 3 answer", "down end 4", "up end 5", "close 5 finished"});
  CHECK(record.info.server == kServer);
  CHECK_FALSE(record.info.joined_late);
  CHECK(test::to_ms(record.info.opened_at) == 1);
  CHECK(f.table.open_connections() == 0);
  f.table.advance_to(line_ms(10'000));
  CHECK(f.table.size() == 0);
}

TEST_CASE("half-close: the server goes on after the client's FIN", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  f.up(1, 0, "ask", kFin | kAck);
  f.down(2, 0, "one", kAck, 4);
  f.down(3, 3, "two", kFin | kAck, 4);
  CHECK(f.factory.records[0]->events ==
        Events{"up 1 ask", "up end 1", "down 2 one", "down 3 two", "down end 3", "close 3 finished"});
}

TEST_CASE("a client that sends nothing but its FIN, and then is told something", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  f.up(1, 0, "", kFin | kAck);
  CHECK(f.factory.records.empty());
  f.down(2, 0, "408", kFin | kAck, 1);
  CHECK(f.factory.records[0]->events == Events{"up end 1", "down 2 408", "down end 2", "close 2 finished"});
}

TEST_CASE("resets", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  SECTION("by the client, with a hole open") {
    f.up(1, 0, "ask");
    f.down(2, 3, "swer");
    f.up(3, 3, "", kReset);
    CHECK(f.factory.records[0]->events ==
          Events{"up 1 ask", "down gap 3 closed", "down 2 swer", "close 3 reset by client"});
  }
  SECTION("by the server") {
    f.up(1, 0, "ask");
    f.down(2, 0, "", kReset | kAck);
    CHECK(f.factory.records[0]->events == Events{"up 1 ask", "close 2 reset by server"});
    f.down(3, 0, "late", kAck);  // makes no new connection
    f.up(3, 3, "late", kAck);
    CHECK(f.factory.records.size() == 1);
  }
  SECTION("from outside the stream, ignored") {
    f.up(1, 0, "ask");
    f.up(2, 0x20000000, "", kReset);
    f.down(2, 0x20000000, "", kReset);
    f.up(3, 3, "more");
    CHECK(f.factory.records[0]->events == Events{"up 1 ask", "up 3 more"});
    CHECK(f.table.counters().resets_ignored == 2);
  }
  SECTION("before any payload") {
    f.up(1, 0, "", kReset);
    CHECK(f.factory.records.empty());
  }
}

TEST_CASE("the same ports again", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  f.up(1, 0, "old");
  SECTION("with a new sequence number, while the old one is open") {
    f.segment(2, kClient, kServer, 70000, 0, kSyn);
    f.segment(3, kClient, kServer, 70001, 9001, kAck, "new");
    REQUIRE(f.factory.records.size() == 2);
    CHECK(f.factory.records[0]->events == Events{"up 1 old", "close 2 replaced"});
    CHECK(f.factory.records[1]->events == Events{"up 3 new"});
    CHECK_FALSE(f.factory.records[1]->info.joined_late);
  }
  SECTION("a repeated SYN is nothing") {
    f.segment(2, kClient, kServer, 1000, 0, kSyn);
    f.segment(2, kServer, kClient, 5000, 1001, kSyn | kAck);
    f.up(3, 3, "more");
    CHECK(f.factory.records[0]->events == Events{"up 1 old", "up 3 more"});
  }
  SECTION("only the answer to the SYN was captured") {
    f.segment(2, kServer, kClient, 90000, 70001, kSyn | kAck);
    f.segment(3, kClient, kServer, 70001, 90001, kAck, "new");
    REQUIRE(f.factory.records.size() == 2);
    CHECK(f.factory.records[1]->to_server == "new");
    CHECK_FALSE(f.factory.records[1]->info.joined_late);
  }
  SECTION("right after the close") {
    f.up(2, 3, "", kReset);
    f.segment(3, kClient, kServer, 70000, 0, kSyn);
    f.segment(4, kClient, kServer, 70001, 9001, kAck, "new");
    REQUIRE(f.factory.records.size() == 2);
    CHECK(f.factory.records[1]->to_server == "new");
  }
}

TEST_CASE("late join", "[connection_table]") {
  Fixture f;
  f.down(5, 1000, "tokens");
  f.up(6, 40, "ask");
  f.down(7, 1006, "more");
  REQUIRE(f.factory.records.size() == 1);
  CHECK(f.factory.records[0]->info.joined_late);
  CHECK(test::to_ms(f.factory.records[0]->info.opened_at) == 5);
  CHECK(f.factory.records[0]->to_client == "tokensmore");
  CHECK(f.table.connections_joined_late() == 1);
  SECTION("what went before is old, by the acknowledgment of the first segment") {
    Fixture g;
    g.up(0, 50, "ask", kAck, 300);
    g.down(1, 290, "old", kAck);
    g.down(2, 300, "new", kAck);
    CHECK(g.factory.records[0]->to_client == "new");
  }
}

TEST_CASE("a handshake without its answer is still complete", "[connection_table]") {
  Fixture f;
  f.segment(0, kClient, kServer, 1000, 0, kSyn);
  f.up(1, 0, "ask");
  f.down(2, 3, "tail", kAck, 3);
  f.table.advance_to(line_ms(500));
  CHECK_FALSE(f.factory.records[0]->info.joined_late);
  CHECK(f.factory.records[0]->events == Events{"up 1 ask", "down gap 3 old", "down 2 tail"});
}

TEST_CASE("data on the SYN", "[connection_table]") {
  Fixture f;
  f.segment(0, kClient, kServer, 1000, 0, kSyn, "ask");
  f.segment(1, kServer, kClient, 5000, 1004, kSyn | kAck);
  f.up(2, 3, " more");
  CHECK(f.factory.records[0]->to_server == "ask more");
}

TEST_CASE("which side is the server", "[connection_table]") {
  Fixture f;
  const Endpoint low = test::ipv4(10, 0, 0, 1, 8000);
  const Endpoint high = test::ipv4(10, 0, 0, 2, 8080);
  SECTION("no watched port: no state") {
    f.segment(0, test::ipv4(10, 0, 0, 1, 1), test::ipv4(10, 0, 0, 2, 2), 1, 1, kAck, "x");
    CHECK(f.table.size() == 0);
    CHECK(f.table.counters().other_port == 1);
  }
  SECTION("both watched: the SYN says it") {
    f.segment(0, low, high, 1000, 0, kSyn);
    f.segment(1, low, high, 1001, 5001, kAck, "ask");
    f.segment(2, high, low, 5001, 1004, kAck, "answer");
    REQUIRE(f.factory.records.size() == 1);
    CHECK(f.factory.records[0]->info.server == high);
    CHECK(f.factory.records[0]->to_server == "ask");
    CHECK(f.factory.records[0]->to_client == "answer");
  }
  SECTION("both watched, joined late: the lower port") {
    f.segment(0, low, high, 1001, 5001, kAck, "answer");
    f.segment(1, high, low, 5001, 1007, kAck, "ask");
    REQUIRE(f.factory.records.size() == 1);
    CHECK(f.factory.records[0]->info.server == low);
  }
}

TEST_CASE("the same packets seen on two interfaces count once", "[connection_table]") {
  Fixture f;
  for (int copy = 0; copy < 2; ++copy) f.segment(0, kClient, kServer, 1000, 0, kSyn);
  for (int copy = 0; copy < 2; ++copy) f.segment(0, kServer, kClient, 5000, 1001, kSyn | kAck);
  for (int copy = 0; copy < 2; ++copy) f.up(1 + copy, 0, "ask");
  for (int copy = 0; copy < 2; ++copy) f.down(3 + copy, 0, "answer", kFin | kAck, 3);
  for (int copy = 0; copy < 2; ++copy) f.up(5 + copy, 3, "", kFin | kAck, 7);
  for (int copy = 0; copy < 2; ++copy) f.down(7 + copy, 0, "answer", kFin | kAck, 4);
  REQUIRE(f.factory.records.size() == 1);
  CHECK(f.factory.records[0]->events ==
        Events{"up 1 ask", "down 3 answer", "down end 3", "up end 5", "close 5 finished"});
}

TEST_CASE("a handler that has seen enough is let go", "[connection_table]") {
  Fixture f;
  f.factory.lose_interest = true;
  f.handshake(0);
  f.up(1, 0, "\x16\x03\x01");
  f.up(2, 3, "more");
  f.down(3, 0, "more");
  CHECK(f.factory.records.size() == 1);
  CHECK(f.factory.records[0]->events.size() == 1);
  CHECK(f.table.counters().ignored_no_interest == 1);
  CHECK(f.table.open_connections() == 0);
}

TEST_CASE("silence", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  SECTION("ten minutes of it are no end") {
    f.up(1, 0, "ask");
    f.down(600'000, 0, "answer");
    CHECK(f.factory.records[0]->events == Events{"up 1 ask", "down 600000 answer"});
  }
  SECTION("fifteen are") {
    f.up(1, 0, "ask");
    f.table.advance_to(line_ms(2'000'000));
    CHECK(f.factory.records[0]->events == Events{"up 1 ask", "close 900001 idle"});
    CHECK(f.table.size() == 0);
  }
  SECTION("a connection without payload goes after half a minute") {
    f.table.advance_to(line_ms(30'001));
    CHECK(f.table.size() == 0);
  }
}

TEST_CASE("a request waits for what the client's network lost, an answer does not", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  f.up(1, 3, "def");
  f.table.advance_to(line_ms(1000));
  CHECK(f.factory.records.empty());
  f.up(1001, 0, "abc");
  CHECK(f.factory.records[0]->to_server == "abcdef");
  f.down(1002, 3, "xyz", kAck, 6);
  f.table.advance_to(line_ms(1300));
  CHECK(f.factory.records[0]->events.back() == "down 1002 xyz");
  CHECK(f.factory.records[0]->bytes_missing == 3);
}

TEST_CASE("the number of connections is bounded: silent ones go first", "[connection_table]") {
  TableLimits limits;
  limits.connections_max = 100;
  Fixture f(limits);
  f.handshake(0);
  f.up(1, 0, "ask");
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const Endpoint client =
        test::ipv4(10, 1, static_cast<std::uint8_t>(i >> 8 & 0xff), static_cast<std::uint8_t>(i & 0xff),
                   static_cast<std::uint16_t>(1024 + i % 60'000));
    f.segment(2, client, kServer, i, 0, kSyn);
  }
  CHECK(f.table.size() == 100);
  CHECK(f.table.counters().evicted == 100'000 - 99);
  f.up(3, 3, " more");
  CHECK(f.factory.records.size() == 1);
  CHECK(f.factory.records[0]->to_server == "ask more");

  // With payload each: the longest idle one goes, and is told.
  for (std::uint16_t i = 0; i < 200; ++i) {
    f.segment(4, test::ipv4(10, 2, 0, 1, static_cast<std::uint16_t>(1024 + i)), kServer, 1, 1, kAck, "x");
  }
  CHECK(f.table.size() == 100);
  CHECK(f.factory.records[0]->events.back() == "close 4 evicted");
  CHECK(f.table.open_connections() == 100);
}

TEST_CASE("what waits over all streams is bounded", "[connection_table]") {
  TableLimits limits;
  limits.waiting_bytes_max = 10'000;
  Fixture f(limits);
  const std::string payload(100, 'x');
  for (std::uint16_t i = 0; i < 1000; ++i) {
    const Endpoint client = test::ipv4(10, 3, 0, 1, static_cast<std::uint16_t>(1024 + i));
    f.segment(0, client, kServer, 1, 1, kAck, payload);
    f.segment(0, client, kServer, 1000, 1, kAck, payload);
  }
  CHECK(f.table.waiting_bytes() <= 10'000);
  CHECK(f.table.stream_counters().gaps == 900);
  f.table.advance_to(line_ms(4000));
  CHECK(f.table.waiting_bytes() == 0);
  CHECK(f.table.stream_counters().gaps == 1000);
}

TEST_CASE("the end of the capture closes what is open", "[connection_table]") {
  Fixture f;
  f.handshake(0);
  f.up(1, 0, "ask");
  f.down(2, 2, "tail");
  f.table.finish(line_ms(3));
  CHECK(f.factory.records[0]->events ==
        Events{"up 1 ask", "down gap 2 closed", "down 2 tail", "close 3 end of capture"});
  CHECK(f.table.size() == 0);
}

TEST_CASE("servers elsewhere are counted once and not followed", "[connection_table]") {
  class Network final : public HostNetwork {
   public:
    std::vector<Address> addresses() override { return {kClient.address}; }
    std::optional<bool> is_card(std::uint32_t index) override { return index == 2; }
    std::optional<std::uint32_t> route(const Address&) override { return std::nullopt; }
  };
  Network network;
  LocalHost local(network, 0);
  RecordingFactory factory;
  const std::uint16_t ports[] = {8080};
  ConnectionTable table(ports, {}, factory, &local);
  const auto send = [&](const Endpoint& from, const Endpoint& to, std::uint32_t interface, Passage passage) {
    static std::uint32_t sequence = 1;
    TcpSegment segment;
    segment.source = from;
    segment.destination = to;
    segment.flags = kAck;
    segment.sequence = sequence++;
    segment.payload = as_bytes("x");
    segment.payload_length = 1;
    segment.interface_index = interface;
    segment.passage = passage;
    table.accept(segment, line_ms(0));
  };
  SECTION("asked from here, over the card") {
    for (int i = 0; i < 3; ++i) send(kClient, kServer, 2, Passage::kOutgoing);
    CHECK(factory.records.empty());
    CHECK(table.counters().ignored_not_local == 1);
  }
  SECTION("taken for local on a bridge, until a copy goes out over the card") {
    send(kClient, kServer, 3, Passage::kOutgoing);
    send(kClient, kServer, 2, Passage::kOutgoing);
    send(kClient, kServer, 3, Passage::kOutgoing);
    REQUIRE(factory.records.size() == 1);
    CHECK(factory.records[0]->events == Events{"up 0 x", "close 0 evicted"});
    CHECK(table.counters().ignored_not_local == 1);
  }
  SECTION("a container's server, asked from elsewhere: the copy on the card says nothing") {
    send(test::ipv4(9, 9, 9, 9, 999), kServer, 2, Passage::kIncoming);
    CHECK(table.size() == 0);
    send(test::ipv4(9, 9, 9, 9, 999), kServer, 3, Passage::kOutgoing);
    CHECK(factory.records.size() == 1);
  }
}

TEST_CASE("a SYN that its own connection's data overtook replaces nothing", "[connection_table]") {
  Fixture f;
  f.up(1, 0, "ask");
  f.segment(2, kClient, kServer, 1000, 0, kSyn);
  f.segment(2, kServer, kClient, 5000, 1001, kSyn | kAck);
  f.up(3, 3, " more");
  f.down(4, 0, "answer", kAck, 8);
  REQUIRE(f.factory.records.size() == 1);
  CHECK(f.factory.records[0]->to_server == "ask more");
  CHECK(f.factory.records[0]->to_client == "answer");
  // Another one's does.
  f.segment(5, kClient, kServer, 900'000, 0, kSyn);
  CHECK(f.factory.records[0]->closed);
}

}  // namespace rooflined::tap
