#include "tests/bench/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace rooflined::bench {
namespace {

constexpr Duration kBetweenStreams = std::chrono::microseconds(10);
constexpr std::uint16_t kFirstClientPort = 20000;
constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string request_text() {
  const std::string_view body =
      R"({"messages":[{"role":"user","content":"one two three four five six seven eight"}],"stream":true})";
  return fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
}

}  // namespace

Traffic::Traffic(const TrafficOptions& options)
    : options_(options), dialect_(simulator::make_dialect(options.dialect)) {
  streams_.reserve(options_.streams);
  for (std::size_t i = 0; i < options_.streams; ++i) {
    const Endpoint client = test::ipv4(127, 0, 0, 1, static_cast<std::uint16_t>(kFirstClientPort + i));
    streams_.push_back({test::TcpConversation(client, test::ipv4(127, 0, 0, 1, kServerPort)), {}});
    simulator::Response& response = streams_.back().response;
    response.request.route = simulator::Route::kChat;
    response.request.stream = true;
    response.request.include_usage = true;
    response.request.prompt_tokens = 8;
    response.id = i;
    response.model = "model";
  }
}

void Traffic::open(CaptureTime at) {
  const std::string request = request_text();
  for (Stream& stream : streams_) {
    stream.talk.open(at);
    stream.talk.from_client(at, request);
    stream.talk.from_server(at, kHead);
    at += kBetweenStreams;
  }
}

void Traffic::step(CaptureTime at) {
  for (Stream& stream : streams_) {
    ++stream.response.generated;
    for (const std::string& frame : dialect_->token_writes(stream.response, 1)) write(stream, at, frame);
    at += kBetweenStreams;
  }
}

void Traffic::close(CaptureTime at) {
  for (Stream& stream : streams_) {
    write(stream, at, dialect_->end_write(stream.response));
    stream.talk.from_server(at, "0\r\n\r\n");
    stream.talk.close(at);
    at += kBetweenStreams;
  }
}

std::vector<test::TimedPacket> Traffic::take() {
  std::vector<test::TimedPacket> packets;
  for (Stream& stream : streams_) {
    std::ranges::move(stream.talk.packets, std::back_inserter(packets));
    stream.talk.packets.clear();
  }
  std::ranges::stable_sort(packets, {}, &test::TimedPacket::at);
  return packets;
}

void Traffic::write(Stream& stream, CaptureTime at, const std::string& frame) {
  stream.talk.from_server(at, fmt::format("{:x}\r\n{}\r\n", frame.size(), frame));
  if (options_.acknowledgments) stream.talk.from_client(at, {});
}

void MemoryCapture::add(const std::vector<test::TimedPacket>& packets) {
  for (const test::TimedPacket& packet : packets) {
    entries_.push_back({packet.at, bytes_.size(), static_cast<std::uint32_t>(packet.bytes.size())});
    bytes_.insert(bytes_.end(), packet.bytes.begin(), packet.bytes.end());
  }
}

void MemoryCapture::replay(tap::PacketSink& sink) const {
  const std::span<const std::byte> all(bytes_);
  for (const Entry& entry : entries_) {
    sink.on_packet({entry.at, all.subspan(entry.offset, entry.size), entry.size, tap::link_type::kEthernet});
  }
}

}  // namespace rooflined::bench
