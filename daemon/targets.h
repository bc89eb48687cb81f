// The engines that the tap has found, each with its books: routes exchange events to them, names them, shows them.
//
//   in:   exchange events (ExchangeSink), line time, and what a target's server and model file say of it
//   out:  target snapshots; a call to `on_found` for each new target, so that somebody asks it who it is
//
// A server that has an engine for each model, all behind one port (Ollama, llama.cpp's router), is one target with
// books for each of those that it lists; what its clients call something else is "unknown" (targets_models.cc).
//
// A target appears at its first recognised exchange and is shown once it has been asked (or cannot be). Bounded:
// targets here, exchanges by the tap. Capture thread only.

#pragma once

#include "collectors/ceiling/measure.h"
#include "collectors/server/deploy_identity.h"
#include "daemon/build_word.h"
#include "daemon/flow_share.h"
#include "daemon/twins.h"
#include "metrics/engine_books.h"
#include "metrics/exchange.h"
#include "metrics/snapshot.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rooflined::daemon {

// Which memory the weights are read from.
enum class Device : std::uint8_t { kAuto, kCpu, kGpu };

// What the settings say of the engine behind a port.
struct TargetSettings {
  std::uint16_t port = 0;
  std::string name;  // empty: family and port
  double replicas = 1;
  double pipeline_parallel = 1;
  bool speculates = false;
  Device device = Device::kAuto;
  std::optional<BytesPerSecond> gpu_bandwidth;  // all GPUs together, rated
  std::vector<int> numa_nodes;                  // that the engine is pinned to; empty: all
};

// One of the engines behind a port that has several.
struct EngineFacts {
  std::string model;                 // as it is shown
  std::vector<std::uint64_t> names;  // model_name_hash() of what it may be asked for by
  std::shared_ptr<const Geometry> geometry = {};
};

// What asking the server brought. Fields that it did not tell are empty.
struct TargetFacts {
  ServerFamily family = ServerFamily::kUnknown;
  std::string version;
  std::string model;  // its label: ServerIdentity::model_label()
  std::shared_ptr<const Geometry> geometry;
  std::shared_ptr<const Geometry> draft_geometry = {};  // of the model that drafts, where one is named
  // Where the server answered.
  std::optional<server::DeployIdentity> identity = {};
  bool several_engines = false;  // ServerIdentity's
  // Of those: the models that the server lists, unless the settings name the one that it has.
  std::vector<EngineFacts> engines = {};
};

class Targets final : public ProxySink {
 public:
  // For so long the old and the new server of a rolling update may answer side by side and are one target.
  static constexpr Duration kOverlapMax = std::chrono::seconds(45);

  struct Options {
    std::vector<WindowSpan> windows;
    std::optional<WindowSpan> live;  // the live page's own
    std::vector<TargetSettings> settings;
    bool gpu_present = false;  // a GPU device node is there: llama.cpp may have offloaded
    std::size_t targets_max = 64;
    std::size_t models_max = 32;  // of one target, with books of their own
    // A target is shown without an answer after this long.
    Duration identity_wait = std::chrono::seconds(3);
    Duration forget_after = std::chrono::hours(1);
    // True where one socket listens for both: a server on all addresses is one engine, whichever of them a client uses.
    // Asked once for each new address; may be empty.
    std::function<bool(const Endpoint& known, const Endpoint& seen)> same_listener;
  };

  struct Found {
    Endpoint endpoint;
    ServerFamily family = ServerFamily::kUnknown;
  };

  // `on_found` may be empty; so may `observer_for`, which gives each target's records an observer that outlives this.
  Targets(const Options& options, std::function<void(const Found&)> on_found,
          std::function<RecordObserver*(const Endpoint&)> observer_for = {});

  void on_begin(const ExchangeBegin& begin) override;
  void on_recognised(ExchangeId exchange, ServerFamily family, std::string_view version) override;
  void on_tokens(const TokenEvent& event) override;
  void on_prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at) override;
  void on_response_id(ExchangeId exchange, std::uint64_t hash, LineTime at) override;
  void on_client_window(ExchangeId exchange, bool closed, LineTime at) override;
  void on_loss(ExchangeId exchange, double tokens, LineTime at) override;
  void on_end(const ExchangeEnd& end) override;
  void on_proxied(ExchangeId exchange, const Endpoint& proxy, const Endpoint& engine) override;
  void on_proxied_tokens(const Endpoint& proxy, std::uint64_t tokens) override;

  // The books of a server in `held_back` go no further than to the time there: older events of it may still be told.
  void advance_to(LineTime now, const std::map<Endpoint, LineTime>& held_back = {});
  void finish();
  // The kernel dropped packets somewhere.
  void lose_everywhere(LineTime at);

  // Of a model that the server does not list, or of which it has several; and of those beyond `models_max`.
  static constexpr const char* kUnknownModel = "unknown";
  static constexpr const char* kOtherModels = "other";

  // The answer to on_found: facts, or that there are none.
  void learn(const Endpoint& endpoint, const TargetFacts& facts);
  void set_up(const Endpoint& endpoint, bool up, LineTime now);
  // The server started anew: the same one after a restart, or another in its place.
  void set_restarted(const Endpoint& endpoint);
  // A connection to it was refused: where its socket cannot be seen, it was started anew once it answers again.
  void set_refused(const Endpoint& endpoint);
  // The inode of its listening socket, where that can be seen from here.
  void set_socket(const Endpoint& endpoint, std::uint64_t inode);
  // What new settings say of device and bandwidth holds at once; names and replicas hold for targets found later.
  void set_settings(const std::vector<TargetSettings>& settings);

  // Engines on these ports are children of the server on `parent`: named by its port, since theirs change with every
  // start, and forgotten as soon as they are gone.
  void set_child_ports(std::uint16_t parent, const std::vector<std::uint16_t>& ports);

  // Requests that have begun and not ended, on any watched port.
  std::size_t exchanges_in_flight() const { return waiting_.size() + owner_.size(); }
  // Exchanges that were left out because targets_max was reached.
  std::uint64_t exchanges_refused() const { return exchanges_refused_; }
  // What the memory nodes deliver one by one: the bandwidth of targets that are pinned to some of them.
  void set_memory_nodes(std::vector<ceiling::NodeResult> nodes) { memory_nodes_ = std::move(nodes); }
  // Decode bytes per second of the RAM-bound targets together, over the last ten seconds that are settled.
  BytesPerSecond ram_decode_rate() const;
  // An engine was recognised there, or somebody has asked for generated text and waits.
  bool knows(const Endpoint& server);
  // One flow in `one_in` is watched from now on; counters stay as counted.
  void set_share(unsigned one_in) { share_.set(one_in, now_); }
  // A target that reads its weights from RAM exists.
  bool ram_bound_exists() const;

  // `ceiling` is the RAM's. Targets that nobody has asked yet are left out.
  std::vector<TargetSnapshot> snapshots(std::optional<BytesPerSecond> ceiling) const;
  // Σ over the engines on the same memory, per window.
  static std::vector<NodeRatioSnapshot> node_ratios(const std::vector<TargetSnapshot>& targets);

  // What a deploy is told from, for each target that is shown.
  struct Running {
    Endpoint endpoint;
    std::string name;
    ServerFamily family;
    std::string model;
    std::uint16_t port;  // of a child: its parent's
    bool up;
    bool proxy;
    bool gpu;
    bool sampled;            // flows are left out, or were a moment ago
    std::uint64_t restarts;  // that were seen
    std::uint64_t answers;   // to the question who it is
    std::uint64_t socket;    // inode; 0: not seen
    server::DeployIdentity identity;
    LineTime wire_since;  // a response told identity.wire first
    EngineBooks* books;
  };
  std::vector<Running> running();
  // Engines that no deploy is told of, and that may read the memory all the same: one that has no name yet, one whose
  // name another address bears by now, and those behind a port beside its first.
  struct Unshown {
    bool gpu;
    EngineBooks* books;
  };
  std::vector<Unshown> unshown();

  // For a finished replay.
  struct View {
    const TargetSnapshot snapshot;
    const EngineBooks& books;
    const Endpoint endpoint;
  };
  std::vector<View> views(std::optional<BytesPerSecond> ceiling) const;

 private:
  // Of a model that the server no longer serves: its counters stay for a while, under its own name. Or of one that it
  // has an engine for beside the first.
  struct ModelBooks {
    std::string model;
    LineTime used;  // last
    std::unique_ptr<EngineBooks> books;
  };
  struct Target {
    Endpoint endpoint;
    ServerFamily family = ServerFamily::kUnknown;
    std::string version;
    BuildWord word;  // as the responses say; the server's own word goes before it
    std::string model;
    std::string name;  // empty until shown
    TargetSettings settings;
    LineTime began;
    bool asked = false;
    std::optional<LineTime> gone_since;
    std::uint64_t restarts = 0;
    bool refused = false;  // nothing listened there when somebody connected last
    std::uint64_t answers = 0;
    std::uint64_t socket = 0;
    server::DeployIdentity identity;  // as answered
    bool superseded = false;          // another address bears its name now
    std::unique_ptr<EngineBooks> books;
    std::vector<ModelBooks> retired;  // newest last
    // Several engines: what the server lists, and the books of those that were used after the first.
    std::vector<EngineFacts> engines;
    std::vector<ModelBooks> further;
    std::uint64_t first_model = 0;  // that was asked for
    bool mixed = false;             // before the server was asked: others as well
    LineTime ask_at = LineTime::min();
    Duration ask_pause{0};
    // As a proxy: the engine behind it, and the share of its latest requests that went there.
    std::optional<Endpoint> engine;
    double proxied_share = 0;
    std::uint64_t proxied_requests = 0;
    std::uint64_t proxied_tokens = 0;

    bool is_proxy() const { return proxied_share > 0.5; }
  };
  struct Owner {
    Target* target;
    EngineBooks* books;
  };

  EngineBooks* books_of(ExchangeId exchange);
  LineTime books_until(const Target& target, LineTime now, const std::map<Endpoint, LineTime>& held_back);
  Target* find(const Endpoint& seen);
  std::unique_ptr<EngineBooks> new_books(const Target& target, LineTime now);
  void note_alive(Target& target);
  void join(ExchangeId exchange, Target& target, const ExchangeBegin& begin);
  void note_word(Target& target, ExchangeId exchange, std::string_view word);
  void retire(Target& target);
  void forget_unused(Target& target, LineTime now);
  EngineBooks& books_for(Target& target, const ExchangeBegin& begin);
  EngineBooks& further_books(Target& target, const std::string& model, LineTime now);
  static std::string model_of(const Target& target, std::uint64_t name);
  static std::shared_ptr<const Geometry> geometry_of(const Target& target, const std::string& model);
  static bool is_mixed(const Target& target, const std::string& model);
  void learn_engines(Target& target, const std::vector<EngineFacts>& engines);
  void learn_model(Target& target, const std::string& model);
  void ask_for_model(Target& target, const EngineBooks& books);
  // use(books) for all books of a target.
  template <typename Use>
  static void for_all_books(const Target& target, Use use) {
    use(*target.books);
    for (const ModelBooks& one : target.further) use(*one.books);
    for (const ModelBooks& one : target.retired) use(*one.books);
  }
  static std::size_t in_flight(const Target& target);
  Target* find_or_add(const Endpoint& endpoint, ServerFamily family, LineTime now);
  void name(Target& target);
  bool same_kind(const Target& one, const Target& other) const;
  Target* predecessor_of(const Target& target) const;
  bool may_succeed(const Target& target) const;
  std::uint16_t port_of(const Target& target) const;
  TargetSettings settings_of(std::uint16_t port) const;
  Device device_of(const Target& target) const;
  std::optional<BytesPerSecond> ram_bandwidth_of(const Target& target, std::optional<BytesPerSecond> ceiling) const;
  std::optional<BytesPerSecond> bandwidth_of(const Target& target, std::optional<BytesPerSecond> ceiling) const;
  TargetSnapshot snapshot_of(const Target& target, std::optional<BytesPerSecond> ceiling) const {
    return snapshot_of(target, target.model, *target.books, ceiling);
  }
  TargetSnapshot snapshot_of(const Target& target, const std::string& model, const EngineBooks& books,
                             std::optional<BytesPerSecond> ceiling) const;
  void show_role(const Target& target, TargetSnapshot& snapshot) const;
  void show_share(TargetSnapshot& snapshot) const;
  static TargetSnapshot retired_snapshot(const Target& target, const ModelBooks& retired);

  Options options_;
  std::function<void(const Found&)> on_found_;
  std::function<RecordObserver*(const Endpoint&)> observer_for_;
  std::map<Endpoint, std::unique_ptr<Target>> targets_;
  std::unordered_map<ExchangeId, ExchangeBegin> waiting_;  // not recognised yet
  std::unordered_map<ExchangeId, Owner> owner_;
  std::vector<ceiling::NodeResult> memory_nodes_;
  std::map<std::uint16_t, std::uint16_t> parents_;  // port of a child → port of its parent
  std::map<Endpoint, Endpoint> aliases_;            // other addresses of a target's listener
  LineTime now_ = LineTime::min();
  FlowShare share_;
  std::uint64_t exchanges_refused_ = 0;
};

}  // namespace rooflined::daemon
