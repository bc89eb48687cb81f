#include "tests/simulator/capture_run.h"

#include "tests/simulator/request_body.h"
#include "tests/support/packets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace rooflined::simulator {
namespace {

// Where the stamps begin: any time would do.
constexpr Duration kEpoch = std::chrono::seconds(1'700'000'000);
// From a client's last frame to its next request.
constexpr Duration kTurnaround = std::chrono::microseconds(50);
// How long a client waits before it asks a server again that was not there.
constexpr Duration kRetryPause = std::chrono::seconds(1);

std::string head(const Dialect& dialect, const Response& response) {
  std::string text = "HTTP/1.1 200 OK\r\n";
  if (!dialect.server().empty()) text += fmt::format("Server: {}\r\n", dialect.server());
  if (!response.request.stream) return text + "Content-Type: application/json\r\n";
  return text + fmt::format("Content-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
                            stream_content_type(response.request.route));
}

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

Endpoint client_endpoint(std::size_t number) {
  constexpr std::size_t kPorts = 60000;
  const std::size_t host = number / kPorts;
  return test::ipv4(127, static_cast<std::uint8_t>(1 + (host >> 8) % 250), static_cast<std::uint8_t>(host % 256), 1,
                    static_cast<std::uint16_t>(2048 + number % kPorts));
}

}  // namespace

CaptureRun::CaptureRun(const CaptureRunOptions& options, CaptureFile& file)
    : options_(options), file_(file), dialect_(make_dialect(options.server.dialect)), random_(options.seed) {
  ServerOptions& server = options_.server;
  if (server.version.empty()) server.version = dialect_->version();
  for (std::size_t i = 0; i < server.replicas; ++i) {
    EngineOptions engine = server.engine;
    engine.seed += i;
    replicas_.push_back({Engine(engine), FrameMaker(*dialect_, server.frames, engine.seed)});
  }
}

CaptureRun::~CaptureRun() = default;

CaptureResult CaptureRun::run() {
  for (std::size_t i = 0; i < options_.server.changes.size(); ++i) {
    add_event(from_seconds(options_.server.changes[i].at_seconds), EventKind::kChange, i);
  }
  if (options_.load.rate) {
    add_event(Duration(0), EventKind::kArrival, 0);
  } else {
    add_clients();
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  for (auto& [number, client] : clients_) {
    if (client.connection) client.connection->close(stamp());
  }
  end_phase();
  result_.truth = truth();
  return std::move(result_);
}

void CaptureRun::add_event(Duration at, EventKind kind, std::size_t subject) {
  events_.push({at, ++events_made_, kind, subject, generation_});
}

void CaptureRun::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kStepEnd:
      if (event.generation == generation_) end_step(event.subject);
      break;
    case EventKind::kSend:
      send(event.subject);
      break;
    case EventKind::kArrival:
      arrive();
      break;
    case EventKind::kChange:
      change(options_.server.changes[event.subject]);
      break;
  }
}

// Closed loop: as many clients as there should be now.
void CaptureRun::add_clients() {
  for (std::size_t number = 0; number < options_.load.concurrency; ++number) {
    if (clients_.try_emplace(number).second) add_event(now_, EventKind::kSend, number);
  }
}

void CaptureRun::arrive() {
  if (now_ > Duration(0)) {
    clients_.emplace(arrivals_, Client{nullptr, false});
    send(arrivals_++);
  }
  const double gap = std::exponential_distribution<double>(*options_.load.rate)(random_);
  const Duration next = now_ + from_seconds(gap) + Duration(1);
  if (to_seconds(next) < options_.duration_seconds) add_event(next, EventKind::kArrival, 0);
}

// The client asks now, unless its time is over or nobody is there.
void CaptureRun::send(std::size_t number) {
  const auto found = clients_.find(number);
  Client& client = found->second;
  const bool is_one_too_many = client.keeps_coming && number >= options_.load.concurrency;
  if (to_seconds(now_) >= options_.duration_seconds || is_one_too_many) {
    if (client.connection) client.connection->close(stamp());
    clients_.erase(found);
    return;
  }
  if (now_ >= down_until_) {
    if (!client.connection) connect(client);
    return submit(number);
  }
  CapturedConnection(file_, client_endpoint(connections_made_++), test::ipv4(127, 0, 0, 1, options_.port))
      .refuse(stamp());
  ++result_.refused;
  if (client.keeps_coming) return add_event(now_ + kRetryPause, EventKind::kSend, number);
  clients_.erase(found);
}

void CaptureRun::connect(Client& client) {
  client.connection = std::make_unique<CapturedConnection>(file_, client_endpoint(connections_made_++),
                                                           test::ipv4(127, 0, 0, 1, options_.port));
  client.connection->open(stamp());
}

void CaptureRun::submit(std::size_t number) {
  const LoadPattern& load = options_.load;
  InFlight flight;
  flight.client = number;
  flight.replica = choose_replica();
  Response& response = flight.response;
  std::uniform_real_distribution<double> share;
  response.request = {options_.route, share(random_) >= load.whole_share, load.ask_usage,
                      load.prompt_tokens.draw(random_), load.output_tokens.draw(random_)};
  if (share(random_) < load.abort_share) {
    flight.abort_at =
        1 + static_cast<std::uint64_t>(share(random_) * static_cast<double>(response.request.output_tokens));
  }
  response.id = ++last_id_;
  response.model = options_.server.model.name;
  response.version = options_.server.version;
  response.created = std::chrono::duration_cast<std::chrono::seconds>(kEpoch + now_).count();
  response.cached_tokens = cached_tokens(response.request.prompt_tokens, options_.server.cached_share);

  CapturedConnection& connection = *clients_.at(number).connection;
  const std::string body = request_body(response.request, number);
  connection.from_client(stamp(),
                         fmt::format("POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n"
                                     "Content-Length: {}\r\n\r\n{}",
                                     options_.path, options_.port, body.size(), body));
  if (response.request.stream) connection.from_server(stamp(), head(*dialect_, response));
  Replica& replica = replicas_[flight.replica];
  replica.engine.submit(
      {response.id, response.request.prompt_tokens, response.request.output_tokens, response.cached_tokens});
  ++replica.in_flight;
  ++result_.requests;
  const std::size_t index = flight.replica;
  in_flight_.emplace(response.id, std::move(flight));
  if (replica.step == nullptr) begin_step(index);
}

std::size_t CaptureRun::choose_replica() {
  if (options_.server.balance == Balance::kRandom) {
    return std::uniform_int_distribution<std::size_t>(0, replicas_.size() - 1)(random_);
  }
  return static_cast<std::size_t>(std::ranges::min_element(replicas_, {}, &Replica::in_flight) - replicas_.begin());
}

void CaptureRun::begin_step(std::size_t index) {
  Replica& replica = replicas_[index];
  replica.step = &replica.engine.step();
  add_event(now_ + from_seconds(replica.step->seconds), EventKind::kStepEnd, index);
}

void CaptureRun::end_step(std::size_t index) {
  Replica& replica = replicas_[index];
  for (const Emission& emission : std::exchange(replica.step, nullptr)->emissions) deliver(emission);
  result_.seconds = to_seconds(now_);
  if (!replica.engine.idle()) begin_step(index);
}

void CaptureRun::deliver(const Emission& emission) {
  const auto found = in_flight_.find(emission.id);
  if (found == in_flight_.end()) return;  // its client has gone
  InFlight& flight = found->second;
  CapturedConnection& connection = *clients_.at(flight.client).connection;
  for (const std::string& write : replicas_[flight.replica].frames.take(emission, flight.response, flight.stream)) {
    connection.from_server(stamp(), chunk(write));
  }
  if (emission.finished) {
    if (flight.response.request.stream) {
      connection.from_server(stamp(), "0\r\n\r\n");
    } else {
      const std::string body = dialect_->whole_body(flight.response);
      connection.from_server(
          stamp(), fmt::format("{}Content-Length: {}\r\n\r\n{}", head(*dialect_, flight.response), body.size(), body));
    }
    end_request(emission.id, true);
  } else if (flight.abort_at > 0 && emission.generated >= flight.abort_at) {
    connection.reset(stamp());
    replicas_[flight.replica].engine.cancel(emission.id);
    ++result_.aborted;
    end_request(emission.id, false);
  }
}

void CaptureRun::end_request(SequenceId id, bool completed) {
  const auto found = in_flight_.find(id);
  const std::size_t number = found->second.client;
  --replicas_[found->second.replica].in_flight;
  in_flight_.erase(found);
  const auto client = clients_.find(number);
  if (!completed) client->second.connection.reset();
  if (client->second.keeps_coming) return add_event(now_ + kTurnaround, EventKind::kSend, number);
  if (completed) client->second.connection->close(stamp());
  clients_.erase(client);
}

void CaptureRun::change(const Change& change) {
  end_phase();
  apply(change, options_.server.engine);
  options_.server.version = change.version.value_or(options_.server.version);
  LoadPattern& load = options_.load;
  load.concurrency = change.concurrency.value_or(load.concurrency);
  if (load.rate) load.rate = change.rate.value_or(*load.rate);
  load.prompt_tokens = change.prompt_tokens.value_or(load.prompt_tokens);
  load.output_tokens = change.output_tokens.value_or(load.output_tokens);
  if (change.restart_seconds) restart(*change.restart_seconds);
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    EngineOptions engine = options_.server.engine;
    engine.seed += i;
    replicas_[i].engine.reconfigure(engine);
    if (change.warm_up_seconds > 0) replicas_[i].engine.warm_up(change.warm_up_seconds);
  }
  if (!load.rate) add_clients();
}

void CaptureRun::restart(double seconds) {
  ++generation_;
  down_until_ = now_ + from_seconds(seconds);
  for (Replica& replica : replicas_) replica.step = nullptr;
  while (!in_flight_.empty()) {
    const SequenceId id = in_flight_.begin()->first;
    const InFlight& flight = in_flight_.begin()->second;
    replicas_[flight.replica].engine.cancel(id);
    clients_.at(flight.client).connection->close(stamp());
    ++result_.cut;
    end_request(id, false);
  }
  for (auto& [number, client] : clients_) {
    if (client.connection) client.connection->close(stamp());
    client.connection.reset();
  }
}

void CaptureRun::end_phase() {
  const double from = result_.phases.empty() ? 0 : result_.phases.back().to_seconds;
  const Truth whole = truth();
  result_.phases.push_back({from, to_seconds(now_), whole - phase_begin_});
  phase_begin_ = whole;
}

Truth CaptureRun::truth() const {
  Truth sum;
  for (const Replica& replica : replicas_) sum += replica.engine.truth();
  return sum;
}

CaptureTime CaptureRun::stamp() const {
  return CaptureTime(kEpoch + now_);
}

}  // namespace rooflined::simulator
