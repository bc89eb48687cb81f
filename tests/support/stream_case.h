// Cases from the field as JSON: timed segments of both sides of one connection, and what is right about them. Read into
// a Transcript, so that they are played like our own, or made into packets.
//
//   {"id", "what", "segments": [{"dir": "c2s" | "s2c", "t_ms", "text" | "hex"}], "end": "open" | "fin_s" | "fin_c" |
//    "rst_c" | "rst_s", "expect": {…}}

#pragma once

#include "tests/support/packets.h"
#include "tests/support/transcript.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace rooflined::tap {

struct StreamCase {
  Transcript transcript;
  nlohmann::json expect;
};

inline std::string bytes_from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline StreamCase read_stream_case(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  StreamCase result;
  result.transcript.name = json.at("id");
  result.expect = json.at("expect");
  double last = 0;
  for (const nlohmann::json& segment : json.at("segments")) {
    TranscriptStep& step = result.transcript.steps.emplace_back();
    step.direction = segment.at("dir") == "c2s" ? Direction::kToServer : Direction::kToClient;
    last = segment.at("t_ms");
    step.at = transcript_time(last);
    step.bytes = segment.contains("text") ? segment["text"].get<std::string>()
                                          : bytes_from_hex(segment["hex"].get<std::string>());
  }
  static const std::map<std::string, std::string> kEnds = {
      {"fin_s", "fin-server"}, {"fin_c", "fin-client"}, {"rst_c", "reset-client"}, {"rst_s", "reset-server"}};
  const auto end = kEnds.find(json.value("end", "open"));
  if (end != kEnds.end()) {
    TranscriptStep& step = result.transcript.steps.emplace_back();
    step.kind = TranscriptStep::Kind::kEnd;
    step.end = end->second;
    step.at = transcript_time(last + 1);
  }
  return result;
}

// The same as packets behind a handshake. A gap is left out of the sequence of bytes.
template <typename Pieces>
std::vector<test::TimedPacket> packets_of(const Transcript& transcript, const Endpoint& client, const Endpoint& server,
                                          Pieces pieces) {
  constexpr std::int64_t kStartNs = 1'700'000'000'000'000'000;
  constexpr std::size_t kSegmentMax = 1448;
  const auto stamp = [](LineTime at) { return CaptureTime::from_ns(kStartNs + at.ns()); };
  test::TcpConversation talk(client, server);
  talk.open(CaptureTime::from_ns(kStartNs - 1'000'000));
  for (const TranscriptStep& step : transcript.steps) {
    const bool up = step.direction == Direction::kToServer;
    std::size_t from = 0;
    for (const std::size_t length : pieces(step)) {
      for (std::size_t sent = 0; sent < length; sent += kSegmentMax) {
        const std::string_view piece =
            std::string_view(step.bytes).substr(from + sent, std::min(kSegmentMax, length - sent));
        up ? talk.from_client(stamp(step.at), piece) : talk.from_server(stamp(step.at), piece);
      }
      from += length;
    }
    using namespace tap::tcp_flag;
    if (step.end == "fin-server") talk.from_server(stamp(step.at), {}, kFin | kAck);
    if (step.end == "fin-client") talk.from_client(stamp(step.at), {}, kFin | kAck);
    if (step.end == "reset-server") talk.from_server(stamp(step.at), {}, kReset | kAck);
    if (step.end == "reset-client") talk.from_client(stamp(step.at), {}, kReset | kAck);
  }
  return talk.packets;
}

}  // namespace rooflined::tap
