// Goal: packets of a whole capture come out as connections, whatever was lost, repeated or swapped on the way.

#include "collectors/tap/tap.h"

#include "collectors/tap/packet_source.h"
#include "tests/collectors/tap/recording.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <random>

namespace rooflined::tap {

namespace {

using test::capture_ms;
using test::RecordingFactory;
using test::TimedPacket;

const Tap::Options kOptions{{8080}, {}};
constexpr int kConversations = 8;
constexpr int kFrames = 60;

// Some conversations side by side, a frame every 10 ms each, over IPv4 and IPv6.
struct Capture {
  std::vector<TimedPacket> packets;
  std::vector<std::string> answers;
};

Capture make_capture() {
  Capture capture;
  for (int i = 0; i < kConversations; ++i) {
    const auto port = static_cast<std::uint16_t>(40000 + i);
    const bool version6 = i % 2 == 1;
    test::TcpConversation talk(version6 ? test::ipv6(0, 1, port) : test::ipv4(127, 0, 0, 1, port),
                               version6 ? test::ipv6(0, 1, 8080) : test::ipv4(127, 0, 0, 1, 8080), {},
                               0xffffff00U + static_cast<std::uint32_t>(i), 0xfffffe00U);
    std::int64_t ms = 1000 + i;
    talk.open(capture_ms(ms));
    talk.from_client(capture_ms(ms += 2), "ask " + std::to_string(i));
    std::string answer;
    for (int frame = 0; frame < kFrames; ++frame) {
      const std::string text = "data: " + std::to_string(i) + "/" + std::to_string(frame) + "\n";
      talk.from_server(capture_ms(ms += 10), text);
      talk.from_client(capture_ms(ms), "");
      answer += text;
    }
    talk.close(capture_ms(ms += 10));
    capture.answers.push_back(answer);
    capture.packets.insert(capture.packets.end(), talk.packets.begin(), talk.packets.end());
  }
  std::ranges::stable_sort(capture.packets, {}, &TimedPacket::at);
  return capture;
}

void play(Tap& tap, std::span<const TimedPacket> packets) {
  for (const TimedPacket& packet : packets) tap.on_packet(packet.view(link_type::kEthernet));
  tap.finish();
}

}  // namespace

TEST_CASE("a capture comes out whole", "[tap]") {
  const Capture capture = make_capture();
  RecordingFactory factory;
  Tap tap(kOptions, factory, nullptr);
  play(tap, capture.packets);
  REQUIRE(factory.records.size() == kConversations);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < factory.records.size(); ++i) {
    CHECK(factory.records[i]->to_server == "ask " + std::to_string(i));
    CHECK(factory.records[i]->to_client == capture.answers[i]);
    CHECK(factory.records[i]->events.back().ends_with("finished"));
    bytes += factory.records[i]->to_server.size() + factory.records[i]->to_client.size();
  }
  const TapCounters counters = tap.counters();
  CHECK(counters.packets == capture.packets.size());
  CHECK(counters.decoded[static_cast<std::size_t>(DecodeOutcome::kTcp)] == capture.packets.size());
  CHECK(counters.table.bytes == bytes);
  CHECK(counters.streams.bytes_delivered == bytes);
  CHECK(counters.streams.gaps == 0);
  CHECK(counters.connections == 0);
  CHECK(test::to_ms(*tap.first_time()) == 1000);
  CHECK(tap.last_time() == tap.now());
}

TEST_CASE("other ports and other protocols leave no trace but a count", "[tap]") {
  RecordingFactory factory;
  Tap tap({{9999}, {}}, factory, nullptr);
  Capture capture = make_capture();
  capture.packets.push_back({capture_ms(3000), test::Wire(60), 0});
  play(tap, capture.packets);
  CHECK(factory.records.empty());
  CHECK(tap.counters().table.other_port == capture.packets.size() - 1);
  CHECK(tap.counters().decoded[static_cast<std::size_t>(DecodeOutcome::kNotIp)] == 1);
}

// Method: of one packet in a hundred each is dropped, doubled or swapped with the next. What arrives must be the sent
// text with as many bytes missing as the gaps say.
TEST_CASE("a bad capture gives the rest of the bytes, and says what is missing", "[tap]") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Capture capture = make_capture();
    std::vector<TimedPacket> packets;
    for (std::size_t i = 0; i < capture.packets.size(); ++i) {
      switch (random() % 100) {
        case 0:
          continue;
        case 1:
          packets.push_back(capture.packets[i]);
          break;
        case 2:
          if (i + 1 < capture.packets.size()) std::swap(capture.packets[i], capture.packets[i + 1]);
          break;
        default:
          break;
      }
      packets.push_back(capture.packets[i]);
    }
    RecordingFactory factory;
    Tap tap(kOptions, factory, nullptr);
    play(tap, packets);

    std::uint64_t sent = 0;
    for (const std::string& answer : capture.answers) sent += answer.size();
    std::uint64_t arrived = 0;
    for (const auto& record : factory.records) {
      CHECK(record->closed);
      arrived += record->to_client.size() + record->to_server.size();
    }
    sent += kConversations * 5;  // "ask 0"
    CHECK(arrived == tap.counters().streams.bytes_delivered);
    // A lost FIN is one byte of sequence space, so it may count as missing; bytes from before a late join do not.
    CHECK(arrived + tap.counters().streams.bytes_missing + 5 >= sent);
    CHECK(arrived + tap.counters().streams.bytes_missing <= sent + 2 * kConversations);
    CHECK(tap.counters().connections == 0);
  }
}

TEST_CASE("timers run by line time, with packets and without", "[tap]") {
  const auto with_hole = [](Tap& tap, RecordingFactory& factory) {
    test::TcpConversation talk(test::ipv4(127, 0, 0, 1, 40000), test::ipv4(127, 0, 0, 1, 8080));
    talk.open(capture_ms(1000));
    talk.from_client(capture_ms(1001), "ask");
    talk.from_server(capture_ms(1002), "lost");
    talk.from_server(capture_ms(1003), "seen");
    talk.packets.erase(talk.packets.end() - 2);
    for (const TimedPacket& packet : talk.packets) tap.on_packet(packet.view(link_type::kEthernet));
    CHECK(factory.records[0]->to_client.empty());
  };
  RecordingFactory factory;
  Tap tap(kOptions, factory, nullptr);
  SECTION("a packet of anybody") {
    with_hole(tap, factory);
    tap.on_packet(TimedPacket{capture_ms(1300), test::Wire(60), 0}.view(link_type::kEthernet));
    CHECK(factory.records[0]->to_client == "seen");
  }
  SECTION("the monotonic clock") {
    tap.observe(MonotonicTime::from_ns(0));
    with_hole(tap, factory);
    tap.advance_live(MonotonicTime::from_ns(300'000'000));
    CHECK(factory.records[0]->to_client.empty());
    tap.advance_live(MonotonicTime::from_ns(500'000'000));
    CHECK(factory.records[0]->to_client == "seen");
  }
  SECTION("never back") {
    with_hole(tap, factory);
    tap.advance_to(test::line_ms(2000));
    tap.advance_to(test::line_ms(1500));
    CHECK(test::to_ms(*tap.now()) == 2000);
  }
}

TEST_CASE("a clock that is set back leaves the order of events", "[tap]") {
  RecordingFactory factory;
  Tap tap(kOptions, factory, nullptr);
  test::TcpConversation talk(test::ipv4(127, 0, 0, 1, 40000), test::ipv4(127, 0, 0, 1, 8080));
  talk.open(capture_ms(100'000));
  talk.from_client(capture_ms(100'001), "ask");
  talk.from_server(capture_ms(50'000), "a");
  talk.from_server(capture_ms(50'010), "b");
  play(tap, talk.packets);
  CHECK(factory.records[0]->events ==
        std::vector<std::string>{"up 100001 ask", "down 100001 a", "down 100011 b", "close 100011 end of capture"});
  CHECK(tap.counters().clock_steps == 1);
}

TEST_CASE("a real server's traffic: bytes as tshark counts them", "[tap]") {
  // A llama-server of February 2025 on loopback: one chat stream, and a request for its properties.
  auto source = open_file(std::string(ROOFLINED_TEST_DATA) + "/../captures/llama-server-single.pcap");
  REQUIRE(source);
  RecordingFactory factory;
  Tap tap({{18080}, {}}, factory, nullptr);
  while (true) {
    const auto outcome = (*source)->read(tap, std::chrono::milliseconds(0));
    REQUIRE(outcome);
    if (*outcome == ReadOutcome::kFinished) break;
  }
  tap.finish();
  REQUIRE(factory.records.size() == 2);
  CHECK(factory.records[0]->to_server.size() == 515);
  CHECK(factory.records[0]->to_client.size() == 25188);
  CHECK(factory.records[1]->to_server.size() == 86);
  CHECK(factory.records[1]->to_client.size() == 2007);
  CHECK(tap.counters().streams.gaps == 0);
}

}  // namespace rooflined::tap
