// Sends requests into running probes: how long a probe goes on after the first packet, and what it costs the request.
//
//   rooflined_bench_abort URL [--requests N] [--size BYTES]
//
// URL is a running `rooflined-sim serve`. Every second request goes over a connection that stays open, the others over
// new ones. Before or after each the same request goes out with no probe running, in random order, so that both see the
// same machine. Probes are met at a random moment of their first seconds: while they start, fill, read. A doorbell
// listens at the other requests, too: how late it hears them is this machine's own doing. Exits with 1 where a bar of
// design.md §7 is missed, and needs CAP_NET_RAW. tests/bench/abort.py runs it.

#include "collectors/tap/doorbell.h"
#include "daemon/clock.h"
#include "daemon/probe.h"
#include "tests/simulator/stream_client.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rooflined;

constexpr double kLatencyMax = 1e-3;
constexpr double kTtftRatioMax = 1.05;
constexpr std::size_t kWorstShown = 8;

// One request into a probe, in seconds from its first packet on.
struct Abort {
  double heard = 0;  // the doorbell's thread runs
  double last_load = 0;
  bool reads = false;  // or else: starts, or fills its buffer
  bool kept_alive = false;
};

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values.at(rank);
}

class Bench {
 public:
  Bench(simulator::ClientOptions client, const ceiling::Options& probe, std::uint16_t port)
      : client_options_(std::move(client)), probe_options_(probe), port_(port) {
    client_options_.output_tokens = 4;
    kept_ = std::make_unique<simulator::StreamClient>(client_options_, never_, tokens_);
  }

  // False where a request or a probe failed.
  bool pair(unsigned number) {
    const bool kept_alive = number % 2 == 0;
    const bool probe_first = random_() % 2 == 0;
    std::optional<double> with;
    if (probe_first && !(with = into_probe(kept_alive))) return false;
    // As long after the last request as the other one is: a processor's idle states are as deep.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const std::optional<double> without = beside_no_probe(kept_alive);
    if (!without) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (!probe_first && !(with = into_probe(kept_alive))) return false;
    ratios_.push_back(*with / *without);
    with_.push_back(*with);
    without_.push_back(*without);
    return true;
  }

  bool report() {
    std::sort(aborts_.begin(), aborts_.end(),
              [](const Abort& one, const Abort& other) { return one.last_load > other.last_load; });
    std::vector<double> latencies;
    for (const Abort& abort : aborts_) latencies.push_back(abort.last_load);
    const double p99 = quantile(latencies, 0.99);
    const double ratio = quantile(ratios_, 0.5);
    fmt::print(
        "packet to last load: {} requests, median {:.0f} us, p99 {:.0f} us, most {:.0f} us; {} before any load\n",
        latencies.size(), 1e6 * quantile(latencies, 0.5), 1e6 * p99, 1e6 * latencies.front(),
        std::count(latencies.begin(), latencies.end(), 0.0));
    for (std::size_t i = 0; i < std::min(kWorstShown, aborts_.size()); ++i) {
      const Abort& abort = aborts_[i];
      const std::string after = abort.last_load > 0
                                    ? fmt::format("the last load {:.0f} later", 1e6 * (abort.last_load - abort.heard))
                                    : std::string("no load any more");
      fmt::print("  {:.0f} us: heard after {:.0f}, {}; the probe {}; a {} connection\n", 1e6 * abort.last_load,
                 1e6 * abort.heard, after, abort.reads ? "read" : "started or filled",
                 abort.kept_alive ? "kept-alive" : "new");
    }
    fmt::print("packet to doorbell with no probe: median {:.0f} us, p99 {:.0f} us, most {:.0f} us\n",
               1e6 * quantile(heard_alone_, 0.5), 1e6 * quantile(heard_alone_, 0.99), 1e6 * quantile(heard_alone_, 1));
    fmt::print(
        "time to first token: with a probe {:.3f} ms, without {:.3f} ms; median ratio of the pairs {:.3f}, p90 "
        "{:.3f}\n",
        1e3 * quantile(with_, 0.5), 1e3 * quantile(without_, 0.5), ratio, quantile(ratios_, 0.9));
    return p99 < kLatencyMax && ratio <= kTtftRatioMax;
  }

 private:
  std::optional<double> request(bool kept_alive) {
    simulator::StreamResult result;
    if (kept_alive) {
      result = kept_->run(++number_);
    } else {
      result = simulator::StreamClient(client_options_, never_, tokens_).run(++number_);
    }
    if (result.outcome == simulator::StreamOutcome::kCompleted) return result.ttft_seconds;
    fmt::print(stderr, "the request failed: {}\n", result.failure);
    return std::nullopt;
  }

  std::optional<double> beside_no_probe(bool kept_alive) {
    auto bell = tap::Doorbell::open({"lo", {port_}});
    if (!bell) {
      fmt::print(stderr, "{}\n", bell.error().message());
      return std::nullopt;
    }
    std::optional<double> heard;
    (*bell)->listen([&heard](const Result<CaptureTime>& rung) {
      if (rung.ok()) heard = to_seconds(daemon::wall_now().since_epoch() - rung->since_epoch());
    });
    const std::optional<double> ttft = request(kept_alive);
    bell->reset();
    if (heard) heard_alone_.push_back(*heard);
    return ttft;
  }

  std::optional<double> into_probe(bool kept_alive) {
    auto probe =
        daemon::Probe::start(probe_options_, daemon::Probe::Priority::kIdle, tap::Doorbell::Options{"lo", {port_}});
    if (!probe) {
      fmt::print(stderr, "{}\n", probe.error().message());
      return std::nullopt;
    }
    std::optional<double> ttft;
    std::thread client([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 3000));
      ttft = request(kept_alive);
    });
    bool reads = false;
    const auto measured = (*probe)->wait(daemon::kProbeLimit, [&reads](const ceiling::Progress&) { reads = true; });
    client.join();
    const auto& abort = (*probe)->abort();
    if (!abort || abort->cause != daemon::Probe::Cause::kRequest) {
      fmt::print(stderr, "the probe was not ended by the request: {}\n",
                 measured ? "it came to its end" : measured.error().message());
      return std::nullopt;
    }
    aborts_.push_back({to_seconds(*abort->heard_after), to_seconds(*abort->latency), reads, kept_alive});
    return ttft;
  }

  simulator::ClientOptions client_options_;
  ceiling::Options probe_options_;
  std::uint16_t port_;
  std::atomic<bool> never_{false};
  std::atomic<std::uint64_t> tokens_{0};
  std::unique_ptr<simulator::StreamClient> kept_;
  std::uint64_t number_ = 0;
  std::mt19937 random_{1};
  std::vector<Abort> aborts_;
  std::vector<double> heard_alone_, ratios_, with_, without_;
};

int run(const std::string& url, unsigned requests, Bytes size) {
  const auto client = simulator::client_options_for(url);
  const std::size_t colon = url.rfind(':');
  std::uint16_t port = 0;
  if (colon != std::string::npos) std::from_chars(url.data() + colon + 1, url.data() + url.size(), port);
  if (!client || port == 0) {
    fmt::print(stderr, "{}: not the URL of a server, as http://127.0.0.1:8080\n", url);
    return 2;
  }
  ceiling::Options probe;
  probe.working_set = size;
  probe.repetitions = 1000;  // no probe comes to its end before its request
  Bench bench(*client, probe, port);
  for (unsigned i = 0; i < requests; ++i) {
    if (!bench.pair(i)) return 1;
  }
  return bench.report() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Requests into running probes");
  std::string url;
  unsigned requests = 200;
  Bytes size = 1 * kGiB;
  app.add_option("URL", url)->required();
  app.add_option("--requests", requests)->check(CLI::Range(1U, 100000U));
  app.add_option("--size", size)->transform(CLI::AsSizeValue(false));
  // The probe that Probe::start() makes of this program: what `rooflined membw --worker` is.
  if (argc > 2 && std::string(argv[1]) == "membw") {
    ceiling::Options probe;
    probe.repetitions = 1000;
    CLI::App worker;
    Bytes working_set = 0;
    bool doorbell = false;
    worker.allow_extras();
    worker.add_option("--size", working_set);
    worker.add_flag("--doorbell", doorbell);
    worker.parse(argc, argv);
    probe.working_set = working_set;
    return daemon::run_probe_worker(probe, doorbell);
  }
  CLI11_PARSE(app, argc, argv);
  return run(url, requests, size);
}
