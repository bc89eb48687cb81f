#include "metrics/export/metrics_server.h"

#include "metrics/base/log.h"
#include "metrics/export/listen_socket.h"
#include "metrics/export/routes.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

namespace rooflined::metrics_export {

namespace {

MonotonicTime monotonic_now() {
  return MonotonicTime(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

// A thread that takes no signals: they belong to the thread that waits for them.
template <typename Function>
std::thread start_quiet_thread(Function function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(function));
  } catch (const std::system_error& error) {
    log::error("no thread for the endpoint: {}", error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

MetricsServer::MetricsServer(Options options, SnapshotSource source)
    : options_(std::move(options)), source_(std::move(source)) {}

MetricsServer::~MetricsServer() {
  stop();
}

Status MetricsServer::start() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return ok_status();
  if (options_.tls_certificate.empty() != options_.tls_key.empty()) {
    return Error{ErrorCode::kInvalid, "web", "tls_certificate and tls_key belong together"};
  }
  std::unique_ptr<ChannelFactory> channels = plain_channels();
  if (!options_.tls_certificate.empty()) {
    auto tls = tls_channels(options_.tls_certificate, options_.tls_key);
    if (!tls) return tls.error();
    channels = std::move(tls).value();
  }
  auto socket = open_listen_socket(options_.listen);
  if (!socket) return Error{socket.error().code, "cannot listen on " + socket.error().where, socket.error().detail};

  // The loop owns the routes, and only its thread calls them; the counters are its own.
  const auto parsed = parse_listen_address(options_.listen);
  const auto loop_slot = std::make_shared<HttpLoop*>(nullptr);
  auto routes = std::make_shared<Routes>(
      Routes::Options{options_.version, options_.proc_root, parsed ? parsed->host : "", options_.basic_auth_users},
      source_, [loop_slot] { return (*loop_slot)->counters(); }, monotonic_now);
  loop_ = std::make_unique<HttpLoop>(options_.limits, std::move(socket->fd), std::move(channels),
                                     [routes](const HttpRequest& request) { return routes->answer(request); });
  *loop_slot = loop_.get();
  if (loop_->valid()) thread_ = start_quiet_thread([loop = loop_.get()] { loop->run(); });
  if (!thread_.joinable()) {
    loop_.reset();
    return Error{ErrorCode::kIo, "cannot listen on " + options_.listen, "out of descriptors or threads"};
  }
  address_ = socket->address;
  port_ = socket->port;
  return ok_status();
}

void MetricsServer::stop() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
  loop_.reset();
}

std::string MetricsServer::address() const {
  const std::lock_guard lock(mutex_);
  return address_;
}

std::uint16_t MetricsServer::port() const {
  const std::lock_guard lock(mutex_);
  return port_;
}

}  // namespace rooflined::metrics_export
