// Value or error, by value. The error type is named here once, so that std::expected can replace it later.
//
// Bytes from outside (packets, HTTP, JSON, model files, settings, /proc) end in a Result or in a counter; they never
// throw and never abort. ROOFLINED_CHECK is for our own bugs only, and aborts in every build.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace rooflined {

enum class ErrorCode {
  kInvalid,      // the bytes are wrong
  kTruncated,    // the bytes end too early
  kUnsupported,  // well formed, and not something that we handle
  kNotFound,     // a file, a key, an interface
  kDenied,       // permissions, capabilities
  kBusy,         // the address or the resource is taken
  kLimit,        // a bound of ours was reached
  kIo,           // the operating system said no
};

// `where` names the place (file:line:column, a tensor, an interface), `detail` says what is wrong and what would be
// right. Together they make one line for a person.
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string where;
  std::string detail;

  std::string message() const { return where.empty() ? detail : where + ": " + detail; }
};

struct Unit {};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  // Requires: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires: !ok().
  const Error& error() const& { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Unit>;
inline Status ok_status() {
  return Status(Unit{});
}

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace rooflined

#define ROOFLINED_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::rooflined::check_failed(#condition, __FILE__, __LINE__))
