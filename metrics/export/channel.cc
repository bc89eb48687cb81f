#include "metrics/export/channel.h"

#include "metrics/base/file_stamp.h"
#include "metrics/base/log.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace rooflined::metrics_export {

namespace {

class PlainChannel : public Channel {
 public:
  explicit PlainChannel(int fd) : fd_(fd) {}

  Progress read(std::span<char> into) override {
    return progress(::recv(fd_, into.data(), into.size(), MSG_DONTWAIT), State::kWantsRead);
  }
  Progress write(std::string_view from) override {
    return progress(::send(fd_, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL), State::kWantsWrite);
  }

 private:
  static Progress progress(ssize_t moved, State again) {
    if (moved > 0) return {State::kDone, static_cast<std::size_t>(moved)};
    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {again, 0};
    return {State::kClosed, 0};
  }

  int fd_;
};

class PlainChannels : public ChannelFactory {
 public:
  std::unique_ptr<Channel> make(int fd) override { return std::make_unique<PlainChannel>(fd); }
};

struct SslDeleter {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

class TlsChannel : public Channel {
 public:
  TlsChannel(SSL_CTX* context, int fd) : ssl_(SSL_new(context)) {
    if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), fd) != 1) {
      ssl_.reset();
      return;
    }
    SSL_set_accept_state(ssl_.get());  // the handshake is part of the first read
  }

  Progress read(std::span<char> into) override {
    if (ssl_ == nullptr) return {State::kClosed, 0};
    ERR_clear_error();
    std::size_t bytes = 0;
    const int outcome = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
    return progress(outcome, bytes);
  }
  Progress write(std::string_view from) override {
    if (ssl_ == nullptr) return {State::kClosed, 0};
    ERR_clear_error();
    std::size_t bytes = 0;
    const int outcome = SSL_write_ex(ssl_.get(), from.data(), from.size(), &bytes);
    return progress(outcome, bytes);
  }

 private:
  Progress progress(int outcome, std::size_t bytes) {
    if (outcome == 1) return {State::kDone, bytes};
    switch (SSL_get_error(ssl_.get(), outcome)) {
      case SSL_ERROR_WANT_READ:
        return {State::kWantsRead, 0};
      case SSL_ERROR_WANT_WRITE:
        return {State::kWantsWrite, 0};
      default:
        return {State::kClosed, 0};
    }
  }

  std::unique_ptr<SSL, SslDeleter> ssl_;
};

std::string last_tls_error() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_peek_last_error();
  if (code == 0) return "unknown TLS error";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

using TlsContext = std::unique_ptr<SSL_CTX, SslDeleter>;

struct TlsFiles {
  std::string certificate;
  std::string key;
};

Result<TlsContext> read_tls_files(const TlsFiles& files) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return Error{ErrorCode::kIo, "TLS", last_tls_error()};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // A write that is tried again may come from a buffer that has moved; renegotiation would be free CPU for an attacker.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return Error{ErrorCode::kInvalid, "tls_certificate " + files.certificate, last_tls_error()};
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Error{ErrorCode::kInvalid, "tls_key " + files.key, last_tls_error()};
  }
  return context;
}

// Renewed certificates are taken with the next connection: two stat() calls, small beside the handshake that follows.
class TlsChannels : public ChannelFactory {
 public:
  explicit TlsChannels(TlsFiles files) : files_(std::move(files)) {}

  Status read_files() {
    // Before the files are read: a change meanwhile is seen next time.
    seen_ = stamps();
    auto context = read_tls_files(files_);
    if (!context) return context.error();
    context_ = std::move(context).value();
    return ok_status();
  }

  std::unique_ptr<Channel> make(int fd) override {
    if (stamps() != seen_) read_again();
    return std::make_unique<TlsChannel>(context_.get(), fd);
  }

 private:
  std::array<FileStamp, 2> stamps() const { return {stamp_of(files_.certificate), stamp_of(files_.key)}; }

  // A pair that does not fit is usually one half of a renewal: the other half changes a stamp again.
  void read_again() {
    if (const Status read = read_files(); read) {
      log::info("took the changed tls_certificate {}", files_.certificate);
    } else {
      log::warning("{}; the certificate read before stays in use", read.error().message());
    }
  }

  TlsFiles files_;
  std::array<FileStamp, 2> seen_{};
  TlsContext context_;  // connections hold it as long as they need it
};

}  // namespace

std::unique_ptr<ChannelFactory> plain_channels() {
  return std::make_unique<PlainChannels>();
}

Result<std::unique_ptr<ChannelFactory>> tls_channels(const std::string& certificate, const std::string& key) {
  auto channels = std::make_unique<TlsChannels>(TlsFiles{certificate, key});
  if (const Status read = channels->read_files(); !read) return read.error();
  return std::unique_ptr<ChannelFactory>(std::move(channels));
}

}  // namespace rooflined::metrics_export
