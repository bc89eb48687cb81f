#include "collectors/tap/connection_table.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace rooflined::tap {

namespace {

// How far from the next expected byte a RST may be: a receiver takes it inside its window only (RFC 9293 §3.10.7.4).
constexpr std::int32_t kResetBehindMax = 64 * 1024;
constexpr std::int32_t kResetAheadMax = 16 * 1024 * 1024;

// Data on a SYN is one segment.
constexpr std::uint32_t kSynDataMax = 64 * 1024;

Direction direction_of(bool to_server) {
  return to_server ? Direction::kToServer : Direction::kToClient;
}
Direction opposite(bool to_server) {
  return direction_of(!to_server);
}

// Two words into one by the high and the low half of their product (Lemire, wyhash).
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// The secret keeps a sender from choosing ports that all fall into one bucket.
std::array<std::uint64_t, 2> random_secret() {
  std::random_device device;
  std::array<std::uint64_t, 2> secret{};
  for (std::uint64_t& word : secret) word = std::uint64_t{device()} << 32 | device() | 1;
  return secret;
}

bool is_watched(const ConnectionKey& key, const std::vector<Endpoint>& left_out, unsigned one_in) {
  return in_share(key.client.port, key.server.port, one_in) &&
         std::find(left_out.begin(), left_out.end(), key.server) == left_out.end();
}

FlowEnvironment environment_of(const TableLimits& limits, ConnectionFactory& factory) {
  FlowEnvironment environment{factory, limits.stream, limits.stream, {}, {}, {}};
  environment.request_limits.unacknowledged_hole_age_max = limits.request_hole_age_max;
  environment.budget.bytes_max = limits.waiting_bytes_max;
  return environment;
}

}  // namespace

std::size_t ConnectionTable::KeyHash::operator()(const ConnectionKey& key) const {
  std::array<std::uint64_t, 4> words{};
  std::memcpy(words.data(), key.server.address.data(), 16);
  std::memcpy(words.data() + 2, key.client.address.data(), 16);
  const std::uint64_t ports = std::uint64_t{key.server.port} << 16 | key.client.port;
  const std::uint64_t first = mix(words[0] ^ secret[0], words[1] ^ secret[1]);
  const std::uint64_t second = mix(words[2] ^ secret[1], words[3] ^ secret[0]);
  return mix(first ^ ports, second ^ secret[0]);
}

ConnectionTable::ConnectionTable(std::span<const std::uint16_t> ports, const TableLimits& limits,
                                 ConnectionFactory& factory, LocalHost* local)
    : limits_(limits),
      local_(local),
      environment_(environment_of(limits, factory)),
      connections_(0, KeyHash{random_secret()}) {
  for (const std::uint16_t port : ports) watched_.set(port);
}

void ConnectionTable::set_watch(const Watch& watch, LineTime now) {
  watched_.reset();
  for (const std::uint16_t port : watch.ports) watched_.set(port);
  const unsigned one_in_before = std::exchange(one_in_, watch.one_in);
  const std::vector<Endpoint> left_out_before = std::exchange(left_out_, watch.left_out);
  for (const Stage stage : {Stage::kHandshake, Stage::kOpen, Stage::kIgnored}) {
    Connection* next = nullptr;
    for (Connection* each = lists_[static_cast<std::size_t>(stage)].oldest; each != nullptr; each = next) {
      next = each->newer;
      const bool was_in = is_watched(each->key, left_out_before, one_in_before);
      if (is_watched(each->key, left_out_, one_in_) == was_in || was_in == (stage == Stage::kIgnored)) continue;
      // What comes in is found again, as joined late, by its next packet.
      if (!was_in) {
        erase(*each);
        continue;
      }
      close(*each, CloseCause::kEvicted, now);
      unlink(*each);
      ignore_unwatched(*each);
      link(*each);
    }
  }
}

// Requires: the connection is in no list. False: it is watched.
bool ConnectionTable::ignore_unwatched(Connection& connection) {
  if (is_watched(connection.key, left_out_, one_in_)) return false;
  const bool left_out = !is_watched(connection.key, left_out_, 1);
  ++(left_out ? counters_.ignored_left_out : counters_.ignored_governor);
  connection.stage = Stage::kIgnored;
  return true;
}

void ConnectionTable::accept(const TcpSegment& segment, LineTime at) {
  const auto where = place(segment);
  if (!where) {
    ++counters_.other_port;
    return;
  }
  ++counters_.segments;
  Connection* connection = find(where->key);
  if (connection != nullptr && segment.has(tcp_flag::kSyn) && begins_anew(*connection, segment, where->to_server)) {
    close(*connection, CloseCause::kReplaced, at);
    erase(*connection);
    connection = nullptr;
  }
  if (connection == nullptr) {
    // What is left of a connection that has ended makes no new one.
    if (segment.has(tcp_flag::kReset) || (!segment.has(tcp_flag::kSyn) && segment.payload_length == 0)) return;
    connection = create(*where, segment, at);
    if (connection == nullptr) return;
  }
  if (connection->stage == Stage::kClosed) return;
  touch(*connection, at);
  if (connection->stage == Stage::kIgnored) return;
  if (!connection->own_address && local_->denies(segment, where->to_server)) {
    ++counters_.ignored_not_local;
    close(*connection, CloseCause::kEvicted, at);
    move_to(*connection, Stage::kIgnored);
    return;
  }
  counters_.bytes += segment.payload.size();
  if (segment.has(tcp_flag::kSyn)) learn_handshake(*connection, segment, where->to_server);
  if (segment.has(tcp_flag::kReset)) {
    accept_reset(*connection, segment, where->to_server, at);
  } else {
    accept_stream(*connection, segment, where->to_server, at);
  }
}

// Which connection, and which side is the server: the one whose port is watched.
std::optional<ConnectionTable::Place> ConnectionTable::place(const TcpSegment& segment) const {
  const auto to_server = [&] { return Place{{segment.destination, segment.source}, true}; };
  const auto to_client = [&] { return Place{{segment.source, segment.destination}, false}; };
  const bool destination_watched = watched_.test(segment.destination.port);
  const bool source_watched = watched_.test(segment.source.port);
  if (destination_watched && !source_watched) return to_server();
  if (source_watched && !destination_watched) return to_client();
  if (!source_watched) return std::nullopt;
  // A client that happens to use a watched port.
  if (segment.has(tcp_flag::kSyn)) return segment.has(tcp_flag::kAck) ? to_client() : to_server();
  if (connections_.contains(to_server().key)) return to_server();
  if (connections_.contains(to_client().key)) return to_client();
  return segment.destination.port <= segment.source.port ? to_server() : to_client();
}

ConnectionTable::Connection* ConnectionTable::find(const ConnectionKey& key) {
  if (last_ != nullptr && last_->key == key) return last_;
  const auto found = connections_.find(key);
  if (found == connections_.end()) return nullptr;
  last_ = &found->second;
  return last_;
}

Locality ConnectionTable::judge(const Place& place, const TcpSegment& segment, LineTime at) const {
  return local_ == nullptr ? Locality::kOwnAddress
                           : local_->judge(place.key.server.address, segment, place.to_server, at);
}

// Nullptr where it cannot be said yet whether the server is on this host.
ConnectionTable::Connection* ConnectionTable::create(const Place& place, const TcpSegment& segment, LineTime at) {
  const Locality locality = judge(place, segment, at);
  if (locality == Locality::kUnclear) return nullptr;
  make_room(at);
  Connection& connection = connections_[place.key];
  connection.key = place.key;
  connection.own_address = locality == Locality::kOwnAddress;
  connection.opened_at = at;
  connection.last_at = at;
  if (locality == Locality::kRemote) {
    ++counters_.ignored_not_local;
    connection.stage = Stage::kIgnored;
  } else {
    ignore_unwatched(connection);
  }
  link(connection);
  return &connection;
}

void ConnectionTable::make_room(LineTime at) {
  while (connections_.size() >= limits_.connections_max) {
    for (const Stage stage : {Stage::kClosed, Stage::kIgnored, Stage::kHandshake, Stage::kOpen}) {
      Connection* oldest = lists_[static_cast<std::size_t>(stage)].oldest;
      if (oldest == nullptr) continue;
      if (stage == Stage::kHandshake || stage == Stage::kOpen) ++counters_.evicted;
      close(*oldest, CloseCause::kEvicted, at);
      erase(*oldest);
      break;
    }
  }
}

void ConnectionTable::erase(Connection& connection) {
  drop_flow(connection);
  unlink(connection);
  if (last_ == &connection) last_ = nullptr;
  const ConnectionKey key = connection.key;
  connections_.erase(key);
}

bool ConnectionTable::begins_anew(const Connection& connection, const TcpSegment& segment, bool to_server) const {
  const bool acknowledges = segment.has(tcp_flag::kAck);
  if (to_server == acknowledges) return false;  // a SYN comes from the client, and is answered by the server
  if (to_server && !connection.client_isn && connection.flow != nullptr) {
    // Overtaken by what it opens: the stream began where it says.
    const StreamAssembler& stream = connection.flow->stream(Direction::kToServer);
    if (stream.started() && stream.sequence_next() - (segment.sequence + 1) <= kSynDataMax) return false;
  }
  if (to_server) return connection.client_isn != segment.sequence;
  if (connection.server_isn) return *connection.server_isn != segment.sequence;
  // It acknowledges the client's SYN, and the data on it (RFC 7413).
  return !connection.client_isn || segment.acknowledgment - 1 - *connection.client_isn > kSynDataMax;
}

void ConnectionTable::learn_handshake(Connection& connection, const TcpSegment& segment, bool to_server) {
  const bool acknowledges = segment.has(tcp_flag::kAck);
  if (to_server == acknowledges) return;
  if (to_server) {
    connection.client_isn = segment.sequence;
    connection.client_window_scale = segment.window_scale.value_or(0);
  } else {
    connection.server_isn = segment.sequence;
    // Windows are scaled only where both sides said so.
    if (!segment.window_scale && connection.client_window_scale) connection.client_window_scale = 0;
    if (connection.flow != nullptr) {
      StreamAssembler& stream = connection.flow->stream(Direction::kToClient);
      if (!stream.started()) stream.start_at(segment.sequence + 1);
    }
    if (!connection.client_isn) connection.client_isn = segment.acknowledgment - 1;
  }
}

void ConnectionTable::accept_reset(Connection& connection, const TcpSegment& segment, bool to_server, LineTime at) {
  std::optional<std::uint32_t> expected;
  if (connection.flow != nullptr && connection.flow->stream(direction_of(to_server)).started()) {
    expected = connection.flow->stream(direction_of(to_server)).sequence_next();
  } else if (const auto isn = to_server ? connection.client_isn : connection.server_isn) {
    expected = *isn + 1;
  }
  if (expected) {
    const auto distance = static_cast<std::int32_t>(segment.sequence - *expected);
    if (distance < -kResetBehindMax || distance > kResetAheadMax) {
      ++counters_.resets_ignored;
      return;
    }
  }
  const bool answers_syn = !to_server && connection.client_isn && !connection.server_isn && connection.flow == nullptr;
  if (answers_syn) environment_.factory.refused(connection.key.server, at);
  close(connection, to_server ? CloseCause::kResetByClient : CloseCause::kResetByServer, at);
}

void ConnectionTable::accept_stream(Connection& connection, const TcpSegment& segment, bool to_server, LineTime at) {
  const bool fin = segment.has(tcp_flag::kFin);
  const bool carries = segment.payload_length > 0 || fin;
  if (connection.flow == nullptr) {
    if (!carries) return;
    open_flow(connection, segment, to_server, at);
  }
  Flow& flow = *connection.flow;
  if (segment.has(tcp_flag::kAck)) flow.stream(opposite(to_server)).acknowledge(segment.acknowledgment, at);
  watch_window(flow, segment, to_server, at);
  if (carries) {
    const std::uint32_t first = segment.sequence + (segment.has(tcp_flag::kSyn) ? 1 : 0);
    flow.stream(direction_of(to_server)).accept({first, segment.payload, segment.payload_length, fin, at});
  }
  watch_holes(connection);
  settle(connection, at);
}

// Tells the handler when the client's window closes or opens.
void ConnectionTable::watch_window(Flow& flow, const TcpSegment& segment, bool to_server, LineTime at) {
  // The window of a SYN is never scaled.
  if (segment.has(tcp_flag::kSyn)) return;
  const bool closed = flow.client_window.closed();
  if (!to_server) {
    flow.client_window.send(segment.sequence + segment.payload_length, segment.payload_length);
  } else if (segment.has(tcp_flag::kAck)) {
    flow.client_window.acknowledge(segment.acknowledgment, segment.window);
  }
  if (flow.client_window.closed() != closed) flow.tell_client_window(at);
}

void ConnectionTable::open_flow(Connection& connection, const TcpSegment& segment, bool to_server, LineTime at) {
  // The handshake, or the segment itself, says where the streams begin.
  std::optional<std::uint32_t> client = connection.client_isn;
  std::optional<std::uint32_t> server = connection.server_isn;
  const bool complete = client && (server || to_server);
  if (client) ++*client;
  if (server) ++*server;
  if (segment.has(tcp_flag::kAck)) {
    auto& other = to_server ? server : client;
    if (!other) other = segment.acknowledgment;
  }
  connection.flow = std::make_unique<Flow>(
      environment_, ConnectionInfo{connection.key.server, !complete, complete ? connection.opened_at : at});
  connection.flow->client_window.set_scale(connection.client_window_scale);
  if (client) connection.flow->stream(Direction::kToServer).start_at(*client);
  if (server) connection.flow->stream(Direction::kToClient).start_at(*server);
  move_to(connection, Stage::kOpen);
}

void ConnectionTable::close(Connection& connection, CloseCause cause, LineTime at) {
  if (connection.flow != nullptr) connection.flow->close(cause, at);
  drop_flow(connection);
  connection.last_at = at;
  move_to(connection, Stage::kClosed);
}

void ConnectionTable::drop_flow(Connection& connection) {
  if (connection.flow == nullptr) return;
  const std::size_t slot = connection.flow->hole_slot;
  if (slot != Flow::kNotListed) {
    with_holes_[slot] = with_holes_.back();
    with_holes_[slot]->flow->hole_slot = slot;
    with_holes_.pop_back();
  }
  connection.flow.reset();
}

void ConnectionTable::watch_holes(Connection& connection) {
  Flow& flow = *connection.flow;
  if (!flow.has_hole() || flow.hole_slot != Flow::kNotListed) return;
  flow.hole_slot = with_holes_.size();
  with_holes_.push_back(&connection);
}

// After anything that may have told the handler something. The flow may be gone afterwards.
void ConnectionTable::settle(Connection& connection, LineTime at) {
  if (connection.flow->lost_interest()) {
    ++counters_.ignored_no_interest;
    drop_flow(connection);
    move_to(connection, Stage::kIgnored);
  } else if (connection.flow->ended()) {
    close(connection, CloseCause::kFinished, at);
  }
}

}  // namespace rooflined::tap
