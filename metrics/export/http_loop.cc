#include "metrics/export/http_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace rooflined::metrics_export {

namespace {

constexpr std::string_view kTooLarge =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
constexpr std::chrono::milliseconds kDrainTime{1000};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsPerTurn = 64;
constexpr int kReadsPerTurn = 16;

}  // namespace

struct HttpLoop::Connection {
  enum class Phase {
    kIdle,      // between requests
    kReading,   // a part of a request head is there, or the connection is new
    kWriting,   // a response waits
    kDraining,  // our side is closed; what the client still sends is thrown away, so that it sees the response
    kClosed,
  };

  OwnedFd fd;
  std::unique_ptr<Channel> channel;  // after fd: goes first
  Phase phase = Phase::kReading;
  Clock::time_point since;
  Clock::time_point deadline;
  std::string in;
  std::string out;
  std::size_t written = 0;
  bool close_after_response = false;
  bool try_again = false;  // bytes may wait in `in` or in the TLS library, which poll() cannot see
  short events = POLLIN;

  void enter(Phase next, Clock::time_point now, std::chrono::milliseconds time_max) {
    phase = next;
    since = now;
    deadline = now + time_max;
    events = next == Phase::kWriting ? POLLOUT : POLLIN;
  }
};

HttpLoop::HttpLoop(const HttpLimits& limits, OwnedFd listener, std::unique_ptr<ChannelFactory> channels,
                   HttpHandler handler)
    : limits_(limits),
      listener_(std::move(listener)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      channels_(std::move(channels)),
      engine_(std::move(handler)) {}

HttpLoop::~HttpLoop() = default;

void HttpLoop::stop() {
  stopping_ = true;
  const std::uint64_t one = 1;
  // A full counter wakes the loop as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

WebCounters HttpLoop::counters() const {
  return {dropped_timeout_, dropped_limit_, dropped_too_large_};
}

void HttpLoop::run() {
  std::vector<pollfd> polled;
  while (!stopping_) {
    polled.clear();
    polled.push_back({wake_.get(), POLLIN, 0});
    polled.push_back({accept_paused_ ? -1 : listener_.get(), POLLIN, 0});
    for (const auto& connection : connections_) polled.push_back({connection->fd.get(), connection->events, 0});
    const int ready = ::poll(polled.data(), polled.size(), wait(Clock::now()));
    if (ready < 0 && errno != EINTR) return;
    const Clock::time_point now = Clock::now();
    accept_paused_ = false;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = *connections_[i];
      const bool has_events = ready > 0 && polled[i + 2].revents != 0;
      if (has_events || std::exchange(connection.try_again, false)) advance(connection, now);
    }
    expire(now);
    std::erase_if(connections_, [](const auto& connection) { return connection->phase == Connection::Phase::kClosed; });
    if (ready > 0 && polled[1].revents != 0) accept_new(now);
  }
  connections_.clear();
}

int HttpLoop::wait(Clock::time_point now) {
  auto deadline = Clock::time_point::max();
  if (accept_paused_) deadline = now + kAcceptPause;
  for (const auto& connection : connections_) {
    deadline = std::min(deadline, connection->try_again ? now : connection->deadline);
  }
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void HttpLoop::accept_new(Clock::time_point now) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    OwnedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      // Without descriptors or memory the listener stays readable: without a pause this loop would spin.
      accept_paused_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return;
    }
    if (connections_.size() >= limits_.connections_max) make_room();
    auto connection = std::make_unique<Connection>();
    connection->channel = channels_->make(fd.get());
    connection->fd = std::move(fd);
    connection->enter(Connection::Phase::kReading, now, limits_.request_time_max);
    connections_.push_back(std::move(connection));
  }
}

// Closes the connection that has waited longest; one that is taking its response goes last.
void HttpLoop::make_room() {
  const auto victim = std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
    const bool a_writes = a->phase == Connection::Phase::kWriting;
    const bool b_writes = b->phase == Connection::Phase::kWriting;
    return a_writes != b_writes ? b_writes : a->since < b->since;
  });
  if (victim == connections_.end()) return;
  connections_.erase(victim);
  ++dropped_limit_;
}

// At most one request a turn, so that a client that sends many takes turns with the others.
void HttpLoop::advance(Connection& connection, Clock::time_point now) {
  switch (connection.phase) {
    case Connection::Phase::kIdle:
    case Connection::Phase::kReading:
      read_some(connection, now);
      break;
    case Connection::Phase::kWriting:
      write_some(connection, now);
      break;
    case Connection::Phase::kDraining:
      drain(connection);
      break;
    case Connection::Phase::kClosed:
      break;
  }
}

void HttpLoop::read_some(Connection& connection, Clock::time_point now) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  std::array<char, 4096> buffer;
  std::size_t searched = 0;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const std::size_t end = connection.in.find(kHeadEnd, searched);
    if (end != std::string::npos && end + kHeadEnd.size() <= limits_.request_bytes_max) {
      answer(connection, end + kHeadEnd.size(), now);
      return;
    }
    if (connection.in.size() > limits_.request_bytes_max) {
      ++dropped_too_large_;
      connection.in.clear();
      send(connection, {std::string(kTooLarge), true}, now);
      return;
    }
    searched = connection.in.size() < kHeadEnd.size() ? 0 : connection.in.size() - kHeadEnd.size();
    const Channel::Progress progress = connection.channel->read(buffer);
    if (progress.state == Channel::State::kClosed) {
      connection.phase = Connection::Phase::kClosed;
      return;
    }
    if (progress.state != Channel::State::kDone) {
      connection.events = progress.state == Channel::State::kWantsWrite ? POLLOUT : POLLIN;
      return;
    }
    if (connection.phase == Connection::Phase::kIdle) {
      connection.enter(Connection::Phase::kReading, now, limits_.request_time_max);
    }
    connection.in.append(buffer.data(), progress.bytes);
  }
  connection.try_again = true;
}

void HttpLoop::answer(Connection& connection, std::size_t head_size, Clock::time_point now) {
  HttpReply reply = engine_.answer(std::string_view(connection.in).substr(0, head_size));
  connection.in.erase(0, head_size);
  if (reply.bytes.empty()) {
    connection.phase = Connection::Phase::kClosed;
    return;
  }
  send(connection, std::move(reply), now);
}

void HttpLoop::send(Connection& connection, HttpReply reply, Clock::time_point now) {
  connection.out = std::move(reply.bytes);
  connection.written = 0;
  connection.close_after_response = reply.close;
  connection.enter(Connection::Phase::kWriting, now, limits_.response_time_max);
  write_some(connection, now);
  if (connection.phase == Connection::Phase::kWriting) bound_waiting_bytes(connection);
}

void HttpLoop::write_some(Connection& connection, Clock::time_point now) {
  while (connection.written < connection.out.size()) {
    const auto progress = connection.channel->write(std::string_view(connection.out).substr(connection.written));
    if (progress.state == Channel::State::kClosed) {
      connection.phase = Connection::Phase::kClosed;
      return;
    }
    if (progress.state != Channel::State::kDone) {
      connection.events = progress.state == Channel::State::kWantsRead ? POLLIN : POLLOUT;
      return;
    }
    connection.written += progress.bytes;
  }
  std::string().swap(connection.out);
  if (connection.close_after_response) {
    ::shutdown(connection.fd.get(), SHUT_WR);
    connection.enter(Connection::Phase::kDraining, now, kDrainTime);
    return;
  }
  connection.enter(connection.in.empty() ? Connection::Phase::kIdle : Connection::Phase::kReading, now,
                   connection.in.empty() ? limits_.idle_time_max : limits_.request_time_max);
  connection.try_again = true;
}

void HttpLoop::drain(Connection& connection) {
  std::array<char, 4096> buffer;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const ssize_t count = ::recv(connection.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) continue;
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) connection.phase = Connection::Phase::kClosed;
    return;
  }
}

// Clients that do not take what they asked for must not fill the memory: the one that waits longest is closed.
void HttpLoop::bound_waiting_bytes(const Connection& newest) {
  std::size_t waiting = 0;
  for (const auto& connection : connections_) waiting += connection->out.size();
  while (waiting > limits_.waiting_bytes_max) {
    Connection* oldest = nullptr;
    for (const auto& connection : connections_) {
      if (connection.get() == &newest || connection->out.empty()) continue;
      if (oldest == nullptr || connection->since < oldest->since) oldest = connection.get();
    }
    if (oldest == nullptr) return;
    waiting -= oldest->out.size();
    std::string().swap(oldest->out);
    oldest->phase = Connection::Phase::kClosed;
    ++dropped_limit_;
  }
}

void HttpLoop::expire(Clock::time_point now) {
  for (const auto& connection : connections_) {
    if (connection->phase == Connection::Phase::kClosed || now < connection->deadline) continue;
    // The end of an idle or a drained connection is no fault of the client's.
    if (connection->phase == Connection::Phase::kReading || connection->phase == Connection::Phase::kWriting) {
      ++dropped_timeout_;
    }
    connection->phase = Connection::Phase::kClosed;
  }
}

}  // namespace rooflined::metrics_export
