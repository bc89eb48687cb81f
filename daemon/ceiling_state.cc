#include "daemon/ceiling_state.h"

#include "metrics/base/log.h"
#include "metrics/base/utf8.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

namespace rooflined::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kFileBytesMax = 64 * 1024;
constexpr const char* kFileName = "/ceiling.json";

Error io_error(const std::string& path) {
  return Error{ErrorCode::kIo, path, std::strerror(errno)};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Json result_to_json(const ConfirmedResult& result) {
  return {{"unix_time_ns", result.measured_at.ns()},
          {"ceiling_bytes_per_second", result.ceiling},
          {"median_bytes_per_second", result.median},
          {"kernel", result.kernel},
          {"threads", result.threads},
          {"working_set_bytes", result.working_set},
          {"cache_inflated", result.cache_inflated}};
}

// Throws what nlohmann throws; parse_ceiling_state() catches.
ConfirmedResult result_from_json(const Json& json) {
  ConfirmedResult result;
  result.measured_at = WallTime::from_ns(json.at("unix_time_ns").get<std::int64_t>());
  result.ceiling = json.at("ceiling_bytes_per_second").get<double>();
  result.median = json.at("median_bytes_per_second").get<double>();
  result.kernel = to_label(json.at("kernel").get<std::string>());
  result.threads = json.at("threads").get<unsigned>();
  result.working_set = json.at("working_set_bytes").get<Bytes>();
  result.cache_inflated = json.at("cache_inflated").get<bool>();
  return result;
}

bool possible(const ConfirmedResult& result) {
  // From a megabyte to a petabyte per second, on a machine of this century.
  constexpr BytesPerSecond kCeilingMin = 1e6;
  constexpr BytesPerSecond kCeilingMax = 1e15;
  constexpr unsigned kThreadsMax = 1 << 16;
  constexpr WallTime kMeasuredMax = WallTime::from_ns(4'102'444'800'000'000'000);  // 2100-01-01
  return result.ceiling >= kCeilingMin && result.ceiling <= kCeilingMax && result.median > 0 &&
         result.median <= result.ceiling && result.threads > 0 && result.threads <= kThreadsMax &&
         result.measured_at.ns() > 0 && result.measured_at < kMeasuredMax;
}

Result<std::string> read_text(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT) return Error{ErrorCode::kNotFound, path, "no such file"};
    return io_error(path);
  }
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kFileBytesMax) return Error{ErrorCode::kLimit, path, "larger than any state of ours"};
  text.resize(size);
  return text;
}

Status write_text(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error(path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return io_error(path);
  return ok_status();
}

}  // namespace

ConfirmedResult confirmed_result(const ceiling::Measurement& measurement, WallTime measured_at) {
  ROOFLINED_CHECK(measurement.adoptable() && measurement.winner);
  ConfirmedResult result;
  result.measured_at = measured_at;
  result.ceiling = measurement.winner->best;
  result.median = measurement.winner->median;
  result.kernel = measurement.winner->kernel;
  result.threads = measurement.winner->threads;
  result.working_set = measurement.working_set;
  result.cache_inflated = measurement.cache_inflated;
  return result;
}

void CeilingState::add(ConfirmedResult result) {
  results.push_back(std::move(result));
  if (results.size() > kResultsKept) {
    results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(kResultsKept));
  }
}

const ConfirmedResult* CeilingState::adopted() const {
  if (results.empty()) return nullptr;
  std::vector<const ConfirmedResult*> order;
  for (const ConfirmedResult& result : results) order.push_back(&result);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->ceiling > b->ceiling; });
  return order[std::min<std::size_t>(1, order.size() - 1)];
}

std::string ceiling_state_text(const CeilingState& state) {
  Json json = {{"version", kVersion},
               {"identity",
                {{"cpu_model", state.identity.cpu_model},
                 {"kernel_release", state.identity.kernel_release},
                 {"memory_bytes", state.identity.memory_bytes},
                 {"llc_bytes", state.identity.llc_bytes}}},
               // For people and scripts; loading takes it from the results.
               {"adopted", nullptr},
               {"results", Json::array()}};
  if (const ConfirmedResult* const adopted = state.adopted()) json["adopted"] = result_to_json(*adopted);
  for (const ConfirmedResult& result : state.results) json["results"].push_back(result_to_json(result));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CeilingState> parse_ceiling_state(std::string_view text) {
  if (text.size() > kFileBytesMax) return Error{ErrorCode::kLimit, "", "larger than any state of ours"};
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{ErrorCode::kInvalid, "", "not a JSON object"};
  try {
    if (json.at("version") != kVersion)
      return Error{ErrorCode::kUnsupported, "", "a version of the file that is not ours"};
    CeilingState state;
    const Json& identity = json.at("identity");
    state.identity.cpu_model = identity.at("cpu_model").get<std::string>();
    state.identity.kernel_release = identity.at("kernel_release").get<std::string>();
    state.identity.memory_bytes = identity.at("memory_bytes").get<Bytes>();
    state.identity.llc_bytes = identity.at("llc_bytes").get<Bytes>();
    for (const Json& item : json.at("results")) {
      ConfirmedResult result = result_from_json(item);
      if (!possible(result)) return Error{ErrorCode::kInvalid, "", "a result that cannot be"};
      state.add(std::move(result));
    }
    return state;
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kInvalid, "", error.what()};
  }
}

CeilingState load_ceiling_state(const std::string& directory, const ceiling::MachineIdentity& identity) {
  CeilingState fresh;
  fresh.identity = identity;
  const std::string path = directory + kFileName;
  const auto text = read_text(path);
  if (!text.ok()) {
    if (text.error().code != ErrorCode::kNotFound)
      log::warning("{}: the ceiling is measured afresh", text.error().message());
    return fresh;
  }
  auto state = parse_ceiling_state(*text);
  if (!state.ok()) {
    log::warning("{}: {}: the ceiling is measured afresh", path, state.error().message());
    return fresh;
  }
  if (!ceiling::same_machine(state->identity, identity)) {
    log::info("{}: of another machine, or of this one before it changed: the ceiling is measured afresh", path);
    return fresh;
  }
  state->identity = identity;
  return std::move(state).value();
}

Status save_ceiling_state(const std::string& directory, const CeilingState& state) {
  const std::string path = directory + kFileName;
  const std::string new_path = path + ".new";
  const Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return io_error(directory);
  {
    const Descriptor file(::open(new_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (file.get() < 0) return io_error(new_path);
    // Root hands it to whom the directory belongs, which is the daemon's user. Anyone else cannot, and need not.
    struct stat owner {};
    if (::fstat(folder.get(), &owner) == 0 && ::geteuid() == 0 &&
        ::fchown(file.get(), owner.st_uid, owner.st_gid) != 0) {
      return io_error(new_path);
    }
    if (Status status = write_text(file.get(), new_path, ceiling_state_text(state)); !status.ok()) {
      ::unlink(new_path.c_str());
      return status;
    }
  }
  if (::rename(new_path.c_str(), path.c_str()) != 0) return io_error(path);
  if (::fsync(folder.get()) != 0) return io_error(directory);
  return ok_status();
}

}  // namespace rooflined::daemon
