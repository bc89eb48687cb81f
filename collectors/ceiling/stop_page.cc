#include "collectors/ceiling/stop_page.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
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
  std::int64_t known = shared_->last_load_ns.load();
  while (known < last_load.ns() && !shared_->last_load_ns.compare_exchange_weak(known, last_load.ns())) {
  }
  if (place < kPlaces) shared_->readers[place].store(0);
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
