#include "tests/metrics/export/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>

namespace rooflined {

struct TestClient::Tls {
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
};

TestClient::TestClient(std::uint16_t port, int receive_buffer) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{10, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

TestClient::~TestClient() {
  if (tls_ != nullptr) {
    SSL_free(tls_->ssl);
    SSL_CTX_free(tls_->context);
  }
  if (fd_ >= 0) ::close(fd_);
}

bool TestClient::start_tls() {
  tls_ = std::make_unique<Tls>();
  tls_->context = SSL_CTX_new(TLS_client_method());
  tls_->ssl = SSL_new(tls_->context);
  SSL_set_fd(tls_->ssl, fd_);
  return SSL_connect(tls_->ssl) == 1;
}

std::string TestClient::certificate() const {
  X509* shown = SSL_get1_peer_certificate(tls_->ssl);
  BIO* memory = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(memory, shown);
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(memory);
  X509_free(shown);
  return pem;
}

void TestClient::send(const std::string& bytes) {
  if (tls_ != nullptr) {
    SSL_write(tls_->ssl, bytes.data(), static_cast<int>(bytes.size()));
    return;
  }
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

long TestClient::read_some(char* into, std::size_t size) {
  if (tls_ != nullptr) return SSL_read(tls_->ssl, into, static_cast<int>(size));
  return ::recv(fd_, into, size, 0);
}

std::string TestClient::response() {
  std::array<char, 65536> buffer;
  const std::string field = "Content-Length: ";
  for (;;) {
    const std::size_t head = received_.find("\r\n\r\n");
    const std::size_t length = received_.find(field);
    if (head != std::string::npos && length < head) {
      const std::size_t total = head + 4 + std::stoul(received_.substr(length + field.size()));
      if (received_.size() >= total) {
        const std::string response = received_.substr(0, total);
        received_.erase(0, total);
        return response;
      }
    }
    const long count = read_some(buffer.data(), buffer.size());
    if (count <= 0) return received_;
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool TestClient::closed_by_server() {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (count > 0) continue;
    return count == 0 || errno == ECONNRESET;
  }
}

}  // namespace rooflined
