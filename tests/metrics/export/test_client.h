// A client of a few socket calls on loopback, as slow or as rude as a test wants. Waits at most ten seconds for
// anything.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace rooflined {

class TestClient {
 public:
  // `receive_buffer` 0: as the kernel chooses.
  explicit TestClient(std::uint16_t port, int receive_buffer = 0);
  ~TestClient();

  // False if the handshake fails. No certificate is checked.
  bool start_tls();
  // The certificate that the server showed, as PEM.
  std::string certificate() const;
  // Gives up silently once the server has closed.
  void send(const std::string& bytes);
  // Head and body of the next response with a Content-Length; what came until then if the server closed.
  std::string response();
  // True once the server has closed and nothing is left to read.
  bool closed_by_server();

 private:
  struct Tls;

  long read_some(char* into, std::size_t size);

  int fd_ = -1;
  std::unique_ptr<Tls> tls_;
  std::string received_;
};

}  // namespace rooflined
