#include "collectors/ceiling/stop_page.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace rooflined::ceiling {
namespace {

constexpr std::size_t kPageBytes = 4096;

Error system_error(const char* call) {
  return Error{ErrorCode::kIo, call, std::strerror(errno)};
}

}  // namespace

Result<StopPage> StopPage::create() {
  const int fd = ::memfd_create("rooflined-stop", MFD_CLOEXEC);
  if (fd < 0) return system_error("memfd_create");
  if (::ftruncate(fd, static_cast<off_t>(kPageBytes)) != 0) {
    const Error error = system_error("ftruncate");
    ::close(fd);
    return error;
  }
  auto page = map(fd, fd);
  if (!page.ok()) ::close(fd);
  return page;
}

Result<StopPage> StopPage::attach(int fd) {
  return map(fd, -1);
}

Result<StopPage> StopPage::map(int fd, int fd_kept) {
  void* const page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return system_error("mmap");
  // The page begins as zeros; lock-free atomics have no other state than their value.
  return StopPage(std::launder(static_cast<Shared*>(page)), fd_kept);
}

bool StopPage::knocked() const noexcept {
  if (heeded_ < 0) return false;
  pollfd waiting{heeded_, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

void StopPage::begin_reading(std::size_t place, pid_t thread) const noexcept {
  if (place < kPlaces) shared_->readers[place].store(thread);
}

void StopPage::end_reading(std::size_t place, MonotonicTime last_load) const noexcept {
  raise_to(shared_->last_load_ns, last_load);
  if (place < kPlaces) shared_->readers[place].store(0);
}

void StopPage::interrupt_readers(pid_t process, Whom whom) const noexcept {
  for (auto& reader : shared_->readers) {
    pid_t thread = reader.load();
    bool due = whom == Whom::kAgain && thread < 0;
    if (thread > 0) {
      // First, since whoever is interrupted, or sees that it was, asks when.
      raise_to(shared_->interrupted_at_ns, MonotonicTime(std::chrono::steady_clock::now().time_since_epoch()));
      due = reader.compare_exchange_strong(thread, -thread);
    }
    if (due) ::syscall(SYS_tgkill, process, std::abs(thread), kInterruptSignal);
  }
}

StopPage::Readers StopPage::readers() const noexcept {
  Readers found;
  for (const auto& reader : shared_->readers) {
    const pid_t thread = reader.load();
    if (thread > 0) ++found.reading;
    if (thread < 0) ++found.interrupted;
  }
  return found;
}

cpu_set_t StopPage::reading_cpus() const noexcept {
  static_assert(kPlaces <= CPU_SETSIZE);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (std::size_t place = 0; place < kPlaces; ++place) {
    if (shared_->readers[place].load() != 0) CPU_SET(place, &cpus);
  }
  return cpus;
}

void StopPage::raise_to(std::atomic<std::int64_t>& latest, MonotonicTime to) noexcept {
  std::int64_t known = latest.load();
  while (known < to.ns() && !latest.compare_exchange_weak(known, to.ns())) {
  }
}

StopPage::StopPage(StopPage&& other) noexcept
    : shared_(std::exchange(other.shared_, nullptr)),
      fd_(std::exchange(other.fd_, -1)),
      heeded_(std::exchange(other.heeded_, -1)) {}

StopPage& StopPage::operator=(StopPage&& other) noexcept {
  std::swap(shared_, other.shared_);
  std::swap(fd_, other.fd_);
  std::swap(heeded_, other.heeded_);
  return *this;
}

StopPage::~StopPage() {
  if (shared_ != nullptr) ::munmap(shared_, kPageBytes);
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace rooflined::ceiling
