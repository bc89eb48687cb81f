// Captures of real llama-servers through the whole line, against what the servers themselves counted.
// data/captures/X.expect.json beside X.pcap: `ledger` is an independent reference of the ledger's algorithm.

#include "daemon/model_geometry.h"
#include "daemon/trace_file.h"
#include "daemon/trace_report.h"

#include "tests/support/catch.h"
#include "tests/support/replay.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::test;
using nlohmann::json;

namespace {

const std::string kData = ROOFLINED_TEST_DATA;

json expectation(const std::string& name) {
  return json::parse(std::ifstream(kData + "/captures/" + name + ".expect.json"));
}

std::vector<std::string> capture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kData + "/captures")) {
    if (entry.path().extension() == ".pcap") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The model behind the captures, as a file of its full size whose tensor data are a hole.
class ModelFile {
 public:
  ModelFile() : path_(std::filesystem::temp_directory_path() / ("dense-q8-" + std::to_string(getpid()) + ".gguf")) {
    std::filesystem::copy_file(kData + "/dense-q8.gguf-header", path_,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(path_, 906'775'936);
  }
  ~ModelFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("each capture gives the server's own counts") {
  const std::vector<std::string> names = capture_names();
  REQUIRE(names.size() >= 8);
  const ModelFile model;
  const auto geometry = daemon::load_geometry(model.path(), {});
  REQUIRE(geometry.ok());
  CHECK((*geometry)->dense_bytes == 836'411'392);
  CHECK((*geometry)->kv_bytes_per_token() == 32'768);
  for (const std::string& name : names) {
    INFO(name);
    const json expected = expectation(name);
    const std::vector<StoredPacket> packets = read_packets(kData + "/captures/" + name + ".pcap");
    REQUIRE_FALSE(packets.empty());
    Replay replay(expected["port"].get<std::uint16_t>(), *geometry);
    replay.feed(packets);
    replay.finish();
    const json report = replay.report(50e9);
    REQUIRE(report["targets"].size() == 1);
    const json& target = report["targets"][0];
    CHECK(report["capture"]["gaps"] == 0);
    CHECK(report["capture"]["parse_errors"] == 0);
    CHECK(target["server"] == "llama.cpp");
    CHECK(target["requests"] == expected["requests"]);
    CHECK(target["requests_aborted"] == expected["requests_aborted"]);
    CHECK(target["finished"]["output_tokens"].get<double>() == expected["finished_output_tokens"].get<double>());
    CHECK(target["finished"]["prompt_tokens"].get<double>() == expected["finished_prompt_tokens"].get<double>());
    const json& ledger = expected["ledger"];
    CHECK(target["output_tokens"].get<double>() == ledger["output_tokens"].get<double>());
    CHECK(target["decode_tokens"].get<double>() == ledger["decode_tokens"].get<double>());
    CHECK(target["decode_passes"].get<double>() == Approx(ledger["decode_passes"].get<double>()).epsilon(0.005));
    CHECK(target["busy_seconds"].get<double>() == Approx(ledger["busy_seconds"].get<double>()).epsilon(0.005));
    CHECK(target["sequence_seconds"].get<double>() == Approx(ledger["sequence_seconds"].get<double>()).epsilon(0.005));
    CHECK(target["finished"]["sequence_seconds"].get<double>() ==
          Approx(expected["server_predicted_seconds_of_finished"].get<double>()).epsilon(0.005));
    const json& source = target["token_source"];
    CHECK(source["exact_live"].get<double>() + source["exact_final"].get<double>() +
              source["estimated"].get<double>() ==
          target["output_tokens"].get<double>());
    // What bytes over busy time and bandwidth give, from the report's own figures.
    CHECK(target["mbu_ratio"].get<double>() ==
          Approx(target["decode_bytes"]["total"].get<double>() / (target["busy_seconds"].get<double>() * 50e9)));
    CHECK(target["decode_bytes"]["dense"].get<double>() ==
          Approx(target["decode_passes"].get<double>() * 836'411'392).epsilon(1e-9));
  }
}

TEST_CASE("a capture that lost, repeated or swapped one packet in a hundred never sticks and reports its gaps") {
  for (const std::string& name : {std::string("dense-q8-concurrent"), std::string("b11669-text")}) {
    const json expected = expectation(name);
    const std::vector<StoredPacket> packets = read_packets(kData + "/captures/" + name + ".pcap");
    const double tokens = expected["ledger"]["output_tokens"].get<double>();
    for (unsigned seed = 1; seed <= 20; ++seed) {
      INFO(name << " seed " << seed);
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> chance(0, 1);
      std::vector<StoredPacket> damaged;
      std::size_t removed = 0;
      for (const StoredPacket& packet : packets) {
        const double draw = chance(random);
        if (draw < 0.01) {
          ++removed;
          continue;
        }
        damaged.push_back(packet);
        if (draw < 0.02) damaged.push_back(packet);
        if (draw < 0.03 && draw >= 0.02 && damaged.size() > 1) std::swap(damaged.back(), damaged[damaged.size() - 2]);
      }
      Replay replay(expected["port"].get<std::uint16_t>());
      replay.feed(damaged);
      replay.finish();
      CHECK(replay.line().targets().exchanges_in_flight() == 0);
      const json report = replay.report();
      REQUIRE(report["targets"].size() == 1);
      const double counted = report["targets"][0]["output_tokens"].get<double>();
      // A packet lost is a few tokens lost; a request lost with its head is all of its tokens.
      CHECK(counted > 0.6 * tokens);
      CHECK(counted < 1.1 * tokens);
      // Of the packets some 45 % carry frames: some of the removed ones leave a gap.
      if (removed >= 10) CHECK(report["capture"]["gaps"].get<int>() > 0);
      CHECK((report["capture"]["gaps"].get<int>() > 0) == (report["capture"]["bytes_missing"].get<int>() > 0));
    }
  }
}

TEST_CASE("a capture that begins anywhere in the middle never sticks") {
  const std::string name = "dense-q8-mixed";
  const json expected = expectation(name);
  const std::vector<StoredPacket> packets = read_packets(kData + "/captures/" + name + ".pcap");
  for (std::size_t tenth = 1; tenth < 10; ++tenth) {
    INFO("begins at packet " << packets.size() * tenth / 10);
    Replay replay(expected["port"].get<std::uint16_t>());
    replay.feed({packets.begin() + static_cast<std::ptrdiff_t>(packets.size() * tenth / 10), packets.end()});
    replay.finish();
    CHECK(replay.line().targets().exchanges_in_flight() == 0);
    const json report = replay.report();
    REQUIRE(report["targets"].size() == 1);
    const double share =
        report["targets"][0]["output_tokens"].get<double>() / expected["ledger"]["output_tokens"].get<double>();
    CHECK(share > 0.0);
    CHECK(share < 1.05 - 0.08 * static_cast<double>(tenth));
  }
}

TEST_CASE("a trace replays to the figures of the run that wrote it, and holds no text") {
  const std::string name = "dense-q8-native";
  const json expected = expectation(name);
  const std::vector<StoredPacket> packets = read_packets(kData + "/captures/" + name + ".pcap");
  const std::string path = std::filesystem::temp_directory_path() / ("trace-" + std::to_string(getpid()));
  const ModelFile model;
  const auto geometry = daemon::load_geometry(model.path(), {});
  REQUIRE(geometry.ok());
  json direct;
  {
    auto writer = daemon::TraceWriter::open(path);
    REQUIRE(writer.ok());
    Endpoint endpoint;
    endpoint.port = expected["port"].get<std::uint16_t>();
    Replay replay(endpoint.port, *geometry, (*writer)->observer(endpoint));
    replay.feed(packets);
    replay.finish();
    direct = replay.report(50e9)["targets"][0];
  }
  REQUIRE(daemon::is_trace(path));
  daemon::TraceReport report;
  const auto reading = daemon::read_trace(path, report);
  REQUIRE(reading.ok());
  CHECK(reading->bad_lines == 0);
  const json traced = report.json(50e9)["targets"][0];
  for (const char* figure : {"output_tokens", "decode_tokens", "decode_passes", "sequence_seconds", "busy_seconds",
                             "batch_mean", "context_mean", "mbu_ratio"}) {
    INFO(figure);
    CHECK(traced[figure].get<double>() == Approx(direct[figure].get<double>()).epsilon(1e-6));
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CHECK(text.find("content") == std::string::npos);
  CHECK(text.find("prompt") == std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("a trace with lines that are none is read as far as it goes") {
  const std::string path = std::filesystem::temp_directory_path() / ("bad-trace-" + std::to_string(getpid()));
  std::ofstream(path) << "{\"rooflined_trace\":1}\n"
                      << "not json\n"
                      << "[1,2]\n"
                      << "{\"engine\":5}\n"
                      << "{\"engine\":\"x\"}\n"
                      << "{\"engine\":\"x\",\"a\":2,\"b\":1,\"tokens\":1}\n"
                      << "{\"engine\":\"x\",\"a\":1e300,\"b\":\"y\",\"tokens\":1}\n"
                      << "{\"engine\":\"x\",\"a\":1,\"b\":2,\"tokens\":1,\"passes\":1,\"busy\":1,\"sequence\":1}\n";
  daemon::TraceReport report;
  const auto reading = daemon::read_trace(path, report);
  REQUIRE(reading.ok());
  CHECK(reading->lines == 8);
  CHECK(reading->bad_lines == 5);
  CHECK(report.json(std::nullopt)["targets"][0]["decode_passes"].get<double>() >= 1);
  std::filesystem::remove(path);
}
