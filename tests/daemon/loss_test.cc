// Goal: whatever part of a capture is lost, repeated, out of order or cut, nothing sticks, what is missing is said, and
// MBU stays where it was. Method: captures of real servers, damaged with a seed; the truth about what is missing comes
// from the sequence numbers of the whole capture.

#include "collectors/tap/link_layer.h"
#include "daemon/model_geometry.h"

#include "tests/support/catch.h"
#include "tests/support/replay.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::test;
using nlohmann::json;

namespace {

const std::string kData = ROOFLINED_TEST_DATA;
constexpr double kCeiling = 50e9;

struct Recording {
  std::string name;
  json expected;
  std::vector<StoredPacket> packets;

  std::uint16_t port() const { return expected["port"].get<std::uint16_t>(); }
  double tokens() const { return expected["ledger"]["output_tokens"].get<double>(); }
};

const std::vector<Recording>& recordings() {
  static const std::vector<Recording> all = [] {
    std::vector<Recording> found;
    for (const auto& entry : std::filesystem::directory_iterator(kData + "/captures")) {
      if (entry.path().extension() != ".pcap") continue;
      const std::string name = entry.path().stem().string();
      found.push_back({name, json::parse(std::ifstream(kData + "/captures/" + name + ".expect.json")),
                       read_packets(entry.path().string())});
    }
    std::sort(found.begin(), found.end(), [](const Recording& a, const Recording& b) { return a.name < b.name; });
    return found;
  }();
  return all;
}

std::shared_ptr<const Geometry> model() {
  static const std::shared_ptr<const Geometry> geometry = [] {
    const auto path = std::filesystem::temp_directory_path() / ("loss-" + std::to_string(getpid()) + ".gguf");
    std::filesystem::copy_file(kData + "/dense-q8.gguf-header", path,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(path, 906'775'936);
    auto loaded = daemon::load_geometry(path.string(), {});
    std::filesystem::remove(path);
    return *loaded;
  }();
  return geometry;
}

json replay(const Recording& recording, const std::vector<StoredPacket>& packets) {
  Replay replay(recording.port(), model());
  replay.feed(packets);
  replay.finish();
  CHECK(replay.line().targets().exchanges_in_flight() == 0);
  return replay.report(kCeiling);
}

const json& only_target(const json& report) {
  REQUIRE(report["targets"].size() == 1);
  return report["targets"][0];
}

struct Damage {
  std::vector<StoredPacket> kept;
  std::vector<bool> removed;  // by place in the whole capture
};

Damage lose(const Recording& recording, double share, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> chance(0, 1);
  Damage damage;
  for (const StoredPacket& packet : recording.packets) {
    damage.removed.push_back(chance(random) < share);
    if (!damage.removed.back()) damage.kept.push_back(packet);
  }
  return damage;
}

// Response bytes that no kept packet holds, and that a later kept one of their connection shows to be missing: by its
// place behind them, or by acknowledging them.
std::uint64_t missing_response_bytes(const Recording& recording, const std::vector<bool>& removed) {
  struct Stream {
    std::map<std::uint32_t, std::uint32_t> lost;  // from → to
    std::set<std::uint32_t> kept;                 // first bytes of segments
  };
  std::map<std::pair<Endpoint, Endpoint>, Stream> streams;
  std::uint64_t bytes = 0;
  const auto settle = [&](Stream& stream, std::uint32_t shown_to) {
    for (auto hole = stream.lost.begin(); hole != stream.lost.end();) {
      if (static_cast<std::int32_t>(shown_to - hole->second) < 0) {
        ++hole;
        continue;
      }
      bytes += hole->second - hole->first;
      hole = stream.lost.erase(hole);
    }
  };
  for (std::size_t i = 0; i < recording.packets.size(); ++i) {
    tap::TcpSegment segment;
    if (tap::decode_tcp(recording.packets[i].view(), segment) != tap::DecodeOutcome::kTcp) continue;
    if (segment.has(tap::tcp_flag::kReset)) continue;
    const bool response = segment.source.port == recording.port();
    Stream& stream = streams[response ? std::pair(segment.source, segment.destination)
                                      : std::pair(segment.destination, segment.source)];
    if (response && segment.payload_length > 0 && !stream.kept.contains(segment.sequence)) {
      if (removed[i]) {
        stream.lost[segment.sequence] = segment.sequence + segment.payload_length;
        continue;
      }
      stream.lost.erase(segment.sequence);
      stream.kept.insert(segment.sequence);
    }
    if (removed[i]) continue;
    if (response) {
      settle(stream, segment.sequence);
    } else if (segment.has(tap::tcp_flag::kAck)) {
      settle(stream, segment.acknowledgment);
    }
  }
  return bytes;
}

// The one frame that says that its engine speculates is among what was lost: each token seems to be a pass then.
bool lost_word_of_drafts(const Recording& recording, const Damage& damage) {
  for (std::size_t i = 0; i < damage.removed.size(); ++i) {
    const auto& bytes = recording.packets[i].bytes;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (damage.removed[i] && text.find("\"draft_n\"") != std::string_view::npos) return true;
  }
  return false;
}

// The frames right behind a response's head are among what was lost. The stream seems to begin with the next one, and a
// stall between the two (other prompts, for up to nine seconds in these captures) is not seen as decode time.
bool lost_first_frame(const Recording& recording, const Damage& damage) {
  std::set<Endpoint> begun;  // clients whose response has a head, and no frame yet
  for (std::size_t i = 0; i < damage.removed.size(); ++i) {
    tap::TcpSegment segment;
    const bool tcp = tap::decode_tcp(recording.packets[i].view(), segment) == tap::DecodeOutcome::kTcp;
    if (!tcp || segment.source.port != recording.port() || segment.payload.empty()) continue;
    const std::string_view text(reinterpret_cast<const char*>(segment.payload.data()), segment.payload.size());
    if (text.starts_with("HTTP/1.1")) begun.insert(segment.destination);
    if (text.find("data: ") == std::string_view::npos) continue;
    if (begun.erase(segment.destination) > 0 && damage.removed[i]) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("lost packets: nothing sticks, and the missing bytes are those that were taken") {
  for (const Recording& recording : recordings()) {
    for (const double share : {0.001, 0.01, 0.1}) {
      double truth = 0;
      double missing = 0;
      for (unsigned seed = 1; seed <= 5; ++seed) {
        INFO(recording.name << ", share " << share << ", seed " << seed);
        const Damage damage = lose(recording, share, seed);
        const json report = replay(recording, damage.kept);
        truth += static_cast<double>(missing_response_bytes(recording, damage.removed));
        missing += report["capture"]["bytes_missing"].get<double>();
        if (report["targets"].empty()) continue;  // the only request was lost with its first frames
        CHECK(only_target(report)["output_tokens"].get<double>() < 1.1 * recording.tokens());
      }
      INFO(recording.name << ", share " << share);
      CHECK(missing == Approx(truth).epsilon(0.1));
    }
  }
}

TEST_CASE("MBU at one packet in a hundred lost is within two points") {
  for (const Recording& recording : recordings()) {
    const double whole = only_target(replay(recording, recording.packets))["mbu_ratio"].get<double>();
    double sum = 0;
    unsigned checked = 0;
    constexpr unsigned kSeeds = 60;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      INFO(recording.name << ", seed " << seed);
      const Damage damage = lose(recording, 0.01, seed);
      if (lost_word_of_drafts(recording, damage) || lost_first_frame(recording, damage)) continue;
      ++checked;
      const json report = replay(recording, damage.kept);
      const double error = only_target(report)["mbu_ratio"].get<double>() - whole;
      CHECK(std::abs(error) < 0.02);
      sum += error;
    }
    INFO(recording.name);
    CHECK(checked > kSeeds / 2);
    CHECK(std::abs(sum / checked) < 0.005);
  }
}

TEST_CASE("packets that come up to 90 ms late, or twice, change nothing") {
  using std::chrono::milliseconds;
  for (const Recording& recording : recordings()) {
    const double whole = only_target(replay(recording, recording.packets))["mbu_ratio"].get<double>();
    for (unsigned seed = 1; seed <= 5; ++seed) {
      INFO(recording.name << ", seed " << seed);
      std::mt19937 random(seed);
      // A hole is waited for 200 ms, and one that opens behind it shares that time. Each packet keeps its own stamp.
      const auto sometimes_late = [&random](CaptureTime at) {
        return random() % 10 == 0 ? at + milliseconds(random() % 90) : at;
      };
      std::vector<std::pair<CaptureTime, const StoredPacket*>> arrivals;
      for (const StoredPacket& packet : recording.packets) {
        arrivals.emplace_back(sometimes_late(packet.captured_at), &packet);
        if (random() % 10 == 0) arrivals.emplace_back(sometimes_late(packet.captured_at), &packet);
      }
      std::stable_sort(arrivals.begin(), arrivals.end(),
                       [](const auto& one, const auto& other) { return one.first < other.first; });
      std::vector<StoredPacket> packets;
      for (const auto& [at, packet] : arrivals) packets.push_back(*packet);
      const json report = replay(recording, packets);
      const json& target = only_target(report);
      CHECK(report["capture"]["bytes_missing"] == 0);
      CHECK(target["requests"] == recording.expected["requests"]);
      CHECK(target["output_tokens"].get<double>() == Approx(recording.tokens()).epsilon(0.005));
      CHECK(target["mbu_ratio"].get<double>() == Approx(whole).margin(0.005));
    }
  }
}

TEST_CASE("each packet three times, as veth pair and bridge show it, counts once") {
  for (const Recording& recording : recordings()) {
    INFO(recording.name);
    std::vector<StoredPacket> packets;
    for (const StoredPacket& packet : recording.packets) packets.insert(packets.end(), 3, packet);
    const json report = replay(recording, packets);
    CHECK(report["capture"]["bytes_missing"] == 0);
    CHECK(only_target(report)["requests"] == recording.expected["requests"]);
    CHECK(only_target(report)["output_tokens"].get<double>() == recording.tokens());
  }
}

TEST_CASE("a capture that begins late, at ten places, never sticks nor counts what it did not see") {
  for (const Recording& recording : recordings()) {
    for (std::size_t tenth = 1; tenth <= 10; ++tenth) {
      const std::size_t first = recording.packets.size() * tenth / 11;
      INFO(recording.name << " from packet " << first);
      const json report =
          replay(recording, {recording.packets.begin() + static_cast<std::ptrdiff_t>(first), recording.packets.end()});
      CHECK(report["capture"]["bytes_missing"] == 0);
      if (report["targets"].empty()) continue;
      CHECK(only_target(report)["output_tokens"].get<double>() <= recording.tokens());
    }
  }
}

TEST_CASE("segments cut by snaplen are said to be missing, and nothing sticks") {
  for (const Recording& recording : recordings()) {
    for (const std::size_t length : {std::size_t{96}, std::size_t{200}, std::size_t{400}}) {
      INFO(recording.name << ", " << length << " bytes");
      std::vector<StoredPacket> packets = recording.packets;
      for (StoredPacket& packet : packets) {
        if (packet.wire_length == 0) packet.wire_length = static_cast<std::uint32_t>(packet.bytes.size());
        packet.bytes.resize(std::min(packet.bytes.size(), length));
      }
      const json report = replay(recording, packets);
      if (length <= 200) CHECK(report["capture"]["bytes_missing"].get<double>() > 0);
    }
  }
}
