// Goal: a stream that the capture shows on several hops counts once, where the engine is; streams of two engines that
// look alike count twice. Method: whole captures through the whole line.

#include "daemon/twins.h"

#include "tests/support/catch.h"
#include "tests/support/hops.h"

#include <random>

using namespace rooflined;
using namespace rooflined::test;
using nlohmann::json;

namespace {

const Endpoint kOuter = ipv4(10, 0, 0, 1, 8080);
const Endpoint kInner = ipv4(172, 17, 0, 2, 8000);
const Endpoint kMiddle = ipv4(10, 0, 0, 1, 3000);

// Words as a tokenizer makes them: of one to nine letters.
StreamPlan plan(unsigned seed, double at_ms, std::size_t tokens) {
  std::mt19937 random(seed);
  StreamPlan plan;
  plan.at_ms = at_ms;
  plan.wait_ms = 60;
  for (std::size_t i = 0; i < tokens; ++i) {
    plan.texts.push_back(std::string(1 + random() % 9, 'a'));
    plan.gaps_ms.push_back(15 + static_cast<double>(random() % 1000) / 100);
  }
  return plan;
}

json replay(std::vector<TimedPacket> packets) {
  Replay replay(std::vector<std::uint16_t>{8080, 8000, 3000});
  replay.feed(in_order(std::move(packets)));
  replay.finish();
  CHECK(replay.line().targets().exchanges_in_flight() == 0);
  return replay.report();
}

double tokens_of(const json& report, const std::string& role) {
  double tokens = 0;
  for (const json& target : report["targets"]) {
    if (target["role"] == role) tokens += target["output_tokens"].get<double>();
  }
  return tokens;
}

std::uint64_t requests_of(const json& report, const std::string& role) {
  std::uint64_t requests = 0;
  for (const json& target : report["targets"]) {
    if (target["role"] == role) requests += target["requests"].get<std::uint64_t>();
  }
  return requests;
}

const json& at_port(const json& report, const std::string& port) {
  for (const json& target : report["targets"]) {
    if (target["target"].get<std::string>().ends_with("-" + port)) return target;
  }
  return report["targets"][0];
}

}  // namespace

TEST_CASE("a stream seen on two hops counts once, where the engine is") {
  struct Row {
    const char* name;
    Hop outer;
    Hop inner;
  };
  const Row rows[] = {
      {"NAT before and after", {kOuter, "chatcmpl-0123456789-a"}, {kInner, "chatcmpl-0123456789-a", 0.02}},
      {"NAT, both copies with the same stamp", {kOuter, "chatcmpl-0123456789-a"}, {kInner, "chatcmpl-0123456789-a", 0}},
      {"docker-proxy", {kOuter, "chatcmpl-0123456789-a"}, {kInner, "chatcmpl-0123456789-a", 0.3}},
      {"a proxy that passes ids on", {kOuter, "chatcmpl-0123456789-a"}, {kInner, "chatcmpl-0123456789-a", 4}},
      {"a proxy that gathers frames",
       {kOuter, "chatcmpl-0123456789-a", 0, Style::kChat, 5},
       {kInner, "chatcmpl-0123456789-a", 1}},
      {"another dialect, no id at the engine", {kOuter, "chatcmpl-123"}, {kInner, "", 1, Style::kNative}},
      {"Ollama and its child", {kOuter, "", 0, Style::kOllama}, {kInner, "", 0.6, Style::kNative}},
      {"no id at all", {kOuter, ""}, {kInner, "", 2}},
      {"no id, frames gathered on the inner hop", {kOuter, ""}, {kInner, "", 2, Style::kChat, 2}},
  };
  for (const Row& row : rows) {
    for (const std::size_t tokens : {std::size_t{3}, std::size_t{40}, std::size_t{300}}) {
      INFO(row.name << ", " << tokens << " tokens");
      std::vector<TimedPacket> packets = hop_packets(row.outer, plan(1, 0, tokens), 40001);
      append(packets, hop_packets(row.inner, plan(1, 0, tokens), 50001));
      const json report = replay(packets);
      REQUIRE(report["targets"].size() == 2);
      CHECK(tokens_of(report, "engine") == static_cast<double>(tokens));
      CHECK(tokens_of(report, "proxy") == 0);
      CHECK(requests_of(report, "engine") == 1);
      CHECK(requests_of(report, "proxy") == 0);
      const json& proxy = at_port(report, "8080");
      CHECK(proxy["role"] == "proxy");
      CHECK(proxy["engine"] == at_port(report, "8000")["target"]);
      CHECK(proxy["proxied"]["requests"] == 1);
      CHECK(proxy["proxied"]["output_tokens"].get<std::size_t>() == tokens);
    }
  }
}

TEST_CASE("many streams at once through a proxy count once each, whatever it does to their ids") {
  for (const bool rewritten : {false, true}) {
    for (const Style style : {Style::kChat, Style::kNative}) {
      INFO((rewritten ? "ids rewritten" : "ids passed on") << (style == Style::kNative ? ", native" : ", chat"));
      std::vector<TimedPacket> packets;
      double tokens = 0;
      for (unsigned i = 0; i < 24; ++i) {
        const StreamPlan one = plan(i, 35.0 * i, 50 + 5 * (i % 7));
        const std::string id = "chatcmpl-stream-" + std::to_string(i);
        append(packets,
               hop_packets({kOuter, rewritten ? "proxy-" + id : id}, one, static_cast<std::uint16_t>(40000 + i)));
        append(packets, hop_packets({kInner, style == Style::kNative ? "" : id, 1.5, style}, one,
                                    static_cast<std::uint16_t>(50000 + i)));
        tokens += static_cast<double>(one.texts.size());
      }
      const json report = replay(packets);
      CHECK(tokens_of(report, "engine") == tokens);
      CHECK(tokens_of(report, "proxy") == 0);
      CHECK(requests_of(report, "engine") == 24);
    }
  }
}

TEST_CASE("a proxy that is known for one may be late: a busy machine keeps it waiting for its CPU") {
  std::vector<TimedPacket> packets;
  double tokens = 0;
  for (unsigned i = 0; i < 12; ++i) {
    const bool late = i >= 8;
    StreamPlan one = plan(i, 2000.0 * i, 50);
    one.wait_ms = 400;
    append(packets, hop_packets({kOuter, "", 0, Style::kNative}, one, static_cast<std::uint16_t>(40000 + i)));
    append(packets,
           hop_packets({kInner, "", late ? 120.0 : 1.5, Style::kNative}, one, static_cast<std::uint16_t>(50000 + i)));
    tokens += static_cast<double>(one.texts.size());
  }
  const json report = replay(packets);
  CHECK(tokens_of(report, "engine") == tokens);
  CHECK(tokens_of(report, "proxy") == 0);
  CHECK(at_port(report, "8080")["proxied"]["requests"] == 12);
}

TEST_CASE("three hops in a row count at the last") {
  std::vector<TimedPacket> packets;
  for (unsigned i = 0; i < 3; ++i) {
    const StreamPlan one = plan(i, 3000.0 * i, 60);
    const auto port = static_cast<std::uint16_t>(i);
    append(packets, hop_packets({kMiddle, "chatcmpl-0123456789-ui"}, one, static_cast<std::uint16_t>(40000 + port)));
    append(packets, hop_packets({kOuter, "", 1, Style::kNative}, one, static_cast<std::uint16_t>(45000 + port)));
    append(packets, hop_packets({kInner, "", 2, Style::kNative}, one, static_cast<std::uint16_t>(50000 + port)));
  }
  const json report = replay(packets);
  REQUIRE(report["targets"].size() == 3);
  CHECK(tokens_of(report, "engine") == 180);
  CHECK(at_port(report, "8000")["role"] == "engine");
  CHECK(at_port(report, "8080")["role"] == "proxy");
  CHECK(at_port(report, "3000")["role"] == "proxy");
}

TEST_CASE("what a proxy answers by itself is counted there") {
  std::vector<TimedPacket> packets;
  for (unsigned i = 0; i < 12; ++i) {
    const StreamPlan one = plan(i, 2500.0 * i, 50);
    const std::string id = "chatcmpl-0123456789-" + std::to_string(i);
    append(packets, hop_packets({kOuter, id}, one, static_cast<std::uint16_t>(40000 + i)));
    if (i % 3 != 2) append(packets, hop_packets({kInner, id, 1}, one, static_cast<std::uint16_t>(50000 + i)));
  }
  const json report = replay(packets);
  CHECK(at_port(report, "8000")["output_tokens"] == 400);
  CHECK(at_port(report, "8080")["output_tokens"] == 200);
  CHECK(at_port(report, "8080")["role"] == "proxy");
  CHECK(at_port(report, "8080")["mbu_ratio"].is_null());
}

// The same words at the same pace, forty at a time: many an exchange has another engine's that is asked after it,
// answers before it and goes on like it. What tells is that as many have none.
struct InStep {
  std::vector<TimedPacket> one;
  std::vector<TimedPacket> other;
};

InStep in_step(unsigned seed) {
  const bool with_ids = seed % 2 == 0;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> start(0, 30);
  InStep engines;
  for (unsigned i = 0; i < 40; ++i) {
    StreamPlan one = plan(7, 30.0 * i + start(random), 60);
    one.gaps_ms = {20};
    StreamPlan other = one;
    other.at_ms = 30.0 * i + start(random);
    // Both wait for the end of the pass that runs when they come.
    one.wait_ms = 20 + start(random);
    other.wait_ms = 20 + start(random);
    append(engines.one, hop_packets({kOuter, with_ids ? "chatcmpl-0123456789-a" + std::to_string(i) : ""}, one,
                                    static_cast<std::uint16_t>(40000 + i)));
    append(engines.other, hop_packets({kInner, with_ids ? "chatcmpl-0123456789-b" + std::to_string(i) : ""}, other,
                                      static_cast<std::uint16_t>(50000 + i)));
  }
  return engines;
}

TEST_CASE("two engines that write the same text in step are two") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    InStep engines = in_step(seed);
    std::vector<TimedPacket> packets = engines.one;
    append(packets, engines.other);
    const json report = replay(packets);
    CHECK(tokens_of(report, "engine") == 40 * 120);
  }
}

TEST_CASE("what was held as a possible twin is billed at its own times") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    InStep engines = in_step(seed);
    std::vector<TimedPacket> packets = engines.one;
    append(packets, engines.other);
    const json together = replay(packets);
    const json one = replay(engines.one);
    const json other = replay(engines.other);
    for (const char* figure : {"decode_passes", "busy_seconds", "sequence_seconds", "decode_tokens"}) {
      INFO(figure);
      CHECK(at_port(together, "8080")[figure].get<double>() ==
            Approx(at_port(one, "8080")[figure].get<double>()).epsilon(1e-9));
      CHECK(at_port(together, "8000")[figure].get<double>() ==
            Approx(at_port(other, "8000")[figure].get<double>()).epsilon(1e-9));
    }
  }
}

TEST_CASE("streams that were under way when the capture began count once by their ids") {
  const StreamPlan one = plan(3, 0, 200);
  std::vector<TimedPacket> packets = hop_packets({kOuter, "chatcmpl-0123456789-late"}, one, 40001);
  append(packets, hop_packets({kInner, "chatcmpl-0123456789-late", 1}, one, 50001));
  std::erase_if(packets, [](const TimedPacket& packet) { return packet.at < capture_at(1500); });
  const json report = replay(packets);
  CHECK(at_port(report, "8000")["output_tokens"].get<double>() > 90);
  CHECK(at_port(report, "8080")["output_tokens"].get<double>() == 0);
}
