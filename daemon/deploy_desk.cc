#include "daemon/deploy_desk.h"

#include "daemon/local_socket.h"
#include "metrics/base/log.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace rooflined::daemon {
namespace {

// The capture thread comes round every 50 ms.
constexpr auto kAnswerWithin = std::chrono::seconds(1);

}  // namespace

std::string control_socket_path(const std::string& state_directory) {
  // systemd.exec(5), RuntimeDirectory=; of several, the first.
  const char* runtime = std::getenv("RUNTIME_DIRECTORY");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  std::string directory = runtime == nullptr ? "" : runtime;
  directory = directory.substr(0, directory.find(':'));
  return (directory.empty() ? state_directory : directory) + "/control.sock";
}

DeployDesk::DeployDesk(Options options) : options_(std::move(options)) {}

DeployDesk::~DeployDesk() {
  stop();
}

void DeployDesk::start() {
  auto listener = listen_locally(options_.socket_path);
  if (listener) {
    listener_ = *listener;
  } else {
    log::warning("`rooflined mark-deploy` will not reach this daemon: {}", listener.error().message());
  }
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

void DeployDesk::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  answered_.notify_all();
  ::eventfd_write(wake_, 1);
  thread_.join();
  if (listener_ >= 0) {
    ::close(listener_);
    ::unlink(options_.socket_path.c_str());
  }
  ::close(wake_);
}

void DeployDesk::run() {
  while (true) {
    std::array<pollfd, 2> waits = {pollfd{wake_, POLLIN, 0}, pollfd{listener_, POLLIN, 0}};
    ::poll(waits.data(), waits.size(), -1);
    eventfd_t ignored = 0;
    ::eventfd_read(wake_, &ignored);
    save();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
    if ((waits[1].revents & POLLIN) != 0) {
      if (const int peer = accept_locally(listener_); peer >= 0) serve(peer);
    }
  }
  save();
}

void DeployDesk::keep(std::vector<KeptDeploys> deploys) {
  {
    const std::lock_guard lock(mutex_);
    unsaved_ = std::move(deploys);
  }
  ::eventfd_write(wake_, 1);
}

void DeployDesk::save() {
  std::optional<std::vector<KeptDeploys>> unsaved;
  {
    const std::lock_guard lock(mutex_);
    unsaved = std::exchange(unsaved_, std::nullopt);
  }
  if (!unsaved) return;
  const Status saved = save_deploys(options_.state_directory, *unsaved);
  if (!saved && !save_failed_) log::warning("deploys are not remembered across a restart: {}", saved.error().message());
  save_failed_ = !saved.ok();
}

void DeployDesk::serve(int peer) {
  const LocalConnection connection(peer);
  const auto reply = [&connection](const MarkAnswer& answer) {
    if (const Status sent = connection.write_line(mark_answer_line(answer)); !sent)
      log::info("{}: the peer did not wait for its answer", sent.error().where);
  };
  const Result<std::string> who = connection.permitted_peer();
  if (!who) {
    log::warning("control socket: {}", who.error().message());
    reply({0, who.error().message()});
    return;
  }
  const auto line = connection.read_line(kMarkLineBytesMax);
  if (!line) return;
  const auto mark = parse_mark(*line);
  MarkAnswer answer{0, mark ? "" : mark.error().message()};
  if (mark) {
    answer = ask_capture_thread(*mark);
    log::info("control socket: {} marked target {}{}: {}", *who, mark->target, mark->accept ? " as accepted" : "",
              answer.error.empty() ? "done" : answer.error);
  }
  reply(answer);
}

MarkAnswer DeployDesk::ask_capture_thread(const Mark& mark) {
  std::unique_lock lock(mutex_);
  waiting_ = mark;
  answer_.reset();
  answered_.wait_for(lock, kAnswerWithin, [this] { return answer_.has_value() || stopping_; });
  waiting_.reset();
  if (answer_) return *std::exchange(answer_, std::nullopt);
  return {0, "the daemon is busy or stops: try again"};
}

void DeployDesk::answer(const std::function<Result<std::uint64_t>(const Mark&)>& apply) {
  const std::lock_guard lock(mutex_);
  if (!waiting_ || answer_) return;
  const Result<std::uint64_t> generation = apply(*waiting_);
  answer_ = generation ? MarkAnswer{*generation, ""} : MarkAnswer{0, generation.error().message()};
  answered_.notify_all();
}

}  // namespace rooflined::daemon
