// Captures in which one stream is seen on several hops: a proxy in front of an engine, NAT before and after.

#pragma once

#include "tests/support/packets.h"
#include "tests/support/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rooflined::test {

// OpenAI chat; llama.cpp /completion and Ollama /api/chat, which give no ids.
enum class Style { kChat, kNative, kOllama };

struct Hop {
  Endpoint server;
  std::string id = {};  // of the response; empty: none
  double lag_ms = 0;    // its request comes that much later than the client's, and its response earlier
  Style style = Style::kChat;
  std::size_t merge = 1;  // frames in a segment
};

inline std::string stream_frame(const Hop& hop, const std::string& text, bool last) {
  if (hop.style == Style::kNative) {
    return fmt::format("data: {{\"content\":\"{}\",\"stop\":{}}}\n\n", text,
                       last ? "true,\"tokens_predicted\":0" : "false");
  }
  if (hop.style == Style::kOllama) {
    return fmt::format("{{\"model\":\"m\",\"message\":{{\"role\":\"assistant\",\"content\":\"{}\"}},\"done\":{}}}\n",
                       text, last ? "true,\"done_reason\":\"stop\"" : "false");
  }
  const std::string id = hop.id.empty() ? "" : fmt::format("\"id\":\"{}\",", hop.id);
  const std::string delta = last ? "{}" : fmt::format("{{\"content\":\"{}\"}}", text);
  const std::string reason = last ? "\"stop\"" : "null";
  return fmt::format(
      "data: "
      "{{{}\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{},\"finish_reason\":{}}}]}}\n\n",
      id, delta, reason);
}

struct StreamPlan {
  double at_ms = 0;
  double wait_ms = 40;               // to the first token
  std::vector<double> gaps_ms = {};  // between tokens
  std::vector<std::string> texts = {};
};

inline CaptureTime capture_at(double ms) {
  return CaptureTime::from_ns(static_cast<std::int64_t>((1000.0 + ms) * 1e6));
}

// Packets of one stream on one hop. `client_port` tells streams apart.
inline std::vector<TimedPacket> hop_packets(const Hop& hop, const StreamPlan& plan, std::uint16_t client_port,
                                            std::uint32_t client_sequence = 1000) {
  TcpConversation talk(ipv4(10, 9, 0, 1, client_port), hop.server, {}, client_sequence);
  const double lag = hop.lag_ms;
  const std::string body = hop.style == Style::kNative
                               ? R"({"prompt":"0123456789","stream":true})"
                               : R"({"messages":[{"role":"user","content":"0123456789"}],"stream":true})";
  const std::string route = hop.style == Style::kNative   ? "/completion"
                            : hop.style == Style::kOllama ? "/api/chat"
                                                          : "/v1/chat/completions";
  const char* type = hop.style == Style::kOllama ? "application/x-ndjson" : "text/event-stream";
  talk.open(capture_at(plan.at_ms + lag - 0.02));
  talk.from_client(
      capture_at(plan.at_ms + lag),
      fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  route, body.size(), body));
  double now = plan.at_ms + plan.wait_ms - lag;
  talk.from_server(capture_at(now - 0.01), fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n\r\n", type));
  std::string pending;
  std::size_t frames = 0;
  for (std::size_t i = 0; i < plan.texts.size(); ++i) {
    if (i > 0) now += plan.gaps_ms.empty() ? 20 : plan.gaps_ms[i % plan.gaps_ms.size()];
    pending += stream_frame(hop, plan.texts[i], false);
    if (++frames < hop.merge && i + 1 < plan.texts.size()) continue;
    talk.from_server(capture_at(now), pending);
    pending.clear();
    frames = 0;
  }
  now += 0.3;
  talk.from_server(capture_at(now),
                   stream_frame(hop, "", true) + (hop.style == Style::kOllama ? "" : "data: [DONE]\n\n"));
  talk.close(capture_at(now + 0.1));
  return talk.packets;
}

// In the order of a capture.
inline std::vector<StoredPacket> in_order(std::vector<TimedPacket> packets) {
  std::stable_sort(packets.begin(), packets.end(),
                   [](const TimedPacket& a, const TimedPacket& b) { return a.at < b.at; });
  std::vector<StoredPacket> stored;
  for (TimedPacket& packet : packets) {
    const auto size = static_cast<std::uint32_t>(packet.bytes.size());
    stored.push_back(StoredPacket{packet.at, std::move(packet.bytes), size, tap::link_type::kEthernet});
  }
  return stored;
}

inline void append(std::vector<TimedPacket>& to, std::vector<TimedPacket> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace rooflined::test
