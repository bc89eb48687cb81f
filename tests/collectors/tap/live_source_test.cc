// Goal: what two sockets say to each other on loopback comes out of a live capture, byte for byte, large segments
// included. Needs CAP_NET_RAW; without it the cases say so and pass.

#include "collectors/tap/local_host.h"
#include "collectors/tap/packet_source.h"
#include "collectors/tap/tap.h"
#include "tests/collectors/tap/recording.h"
#include "tests/support/catch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace rooflined::tap {

namespace {

// A TCP connection of this process with itself, on a port that nobody else uses.
class LoopbackPair {
 public:
  explicit LoopbackPair(bool version6) {
    sockaddr_storage address{};
    socklen_t size = version6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (version6) {
      sockaddr_in6 any{};
      any.sin6_family = AF_INET6;
      any.sin6_addr = in6addr_loopback;
      std::memcpy(&address, &any, sizeof any);
    } else {
      sockaddr_in any{};
      any.sin_family = AF_INET;
      any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::memcpy(&address, &any, sizeof any);
    }
    const int family = version6 ? AF_INET6 : AF_INET;
    listener_ = ::socket(family, SOCK_STREAM, 0);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0) return;
    ::listen(listener_, 1);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    in_port_t raw = 0;  // at the same place in both kinds of address
    std::memcpy(&raw, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port), sizeof raw);
    port = ntohs(raw);
    address_ = address;
    size_ = size;
    family_ = family;
  }
  ~LoopbackPair() {
    for (const int descriptor : {listener_, client_, server_}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  LoopbackPair(const LoopbackPair&) = delete;
  LoopbackPair& operator=(const LoopbackPair&) = delete;

  bool connect() {
    client_ = ::socket(family_, SOCK_STREAM, 0);
    if (::connect(client_, reinterpret_cast<sockaddr*>(&address_), size_) != 0) return false;
    server_ = ::accept(listener_, nullptr, nullptr);
    return server_ >= 0;
  }
  void ask(const std::string& text) { transfer(client_, server_, text); }
  void answer(const std::string& text) { transfer(server_, client_, text); }
  void close() {
    ::close(server_);
    ::close(client_);
    server_ = client_ = -1;
  }

  std::uint16_t port = 0;

 private:
  static void transfer(int from, int to, const std::string& text) {
    std::thread writer([&] {
      for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t count = ::send(from, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += static_cast<std::size_t>(count);
      }
    });
    std::string buffer(65536, '\0');
    for (std::size_t received = 0; received < text.size();) {
      const ssize_t count = ::recv(to, buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      received += static_cast<std::size_t>(count);
    }
    writer.join();
  }

  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
  int family_ = AF_INET;
  sockaddr_storage address_{};
  socklen_t size_ = 0;
};

MonotonicTime monotonic_now() {
  return MonotonicTime(std::chrono::steady_clock::now().time_since_epoch());
}

void check_capture(const std::string& interface, bool version6) {
  INFO(interface << (version6 ? ", IPv6" : ", IPv4"));
  LoopbackPair pair(version6);
  if (pair.port == 0) {
    WARN("no such address here");
    return;
  }
  auto source = open_live({.interface = interface, .ports = {pair.port}});
  if (!source && source.error().code == ErrorCode::kDenied) {
    WARN(source.error().message());
    return;
  }
  REQUIRE(source);
  const auto network = system_host_network();
  LocalHost local(*network, interface_index(interface.c_str()));
  test::RecordingFactory factory;
  Tap tap({{pair.port}, {}}, factory, &local);

  // Fits into the ring of 2 MB even if nobody reads meanwhile.
  std::string large(500'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>('a' + i % 26);
  REQUIRE(pair.connect());
  pair.ask("ask");
  pair.answer(large);
  pair.close();

  constexpr int kReadsMax = 200;
  for (int i = 0; i < kReadsMax && (factory.records.empty() || !factory.records[0]->closed); ++i) {
    tap.observe(monotonic_now());
    REQUIRE((*source)->read(tap, std::chrono::milliseconds(50)));
    tap.advance_live(monotonic_now());
  }
  REQUIRE(factory.records.size() == 1);
  CHECK(factory.records[0]->to_server == "ask");
  CHECK(factory.records[0]->to_client == large);
  CHECK(factory.records[0]->closed);
  CHECK(tap.counters().streams.gaps == 0);
  CHECK(tap.counters().streams.bytes_repeated == 0);
  CHECK((*source)->stats().dropped == 0);
  CHECK((*source)->stats().packets == tap.counters().packets);
}

}  // namespace

TEST_CASE("a conversation on loopback, captured live", "[live_source]") {
  for (const char* interface : {"lo", "any"}) {
    for (const bool version6 : {false, true}) check_capture(interface, version6);
  }
}

TEST_CASE("nothing to capture is a timeout", "[live_source]") {
  auto source = open_live({.interface = "lo", .ports = {1}});
  if (!source) {
    WARN(source.error().message());
    return;
  }
  test::RecordingFactory factory;
  Tap tap({{1}, {}}, factory, nullptr);
  const auto outcome = (*source)->read(tap, std::chrono::milliseconds(1));
  REQUIRE(outcome);
  CHECK(*outcome == ReadOutcome::kTimeout);
}

}  // namespace rooflined::tap
