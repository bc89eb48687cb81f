// Goal: the endpoint on real sockets: it serves, two daemons do not share a port, and no client can hold it.
// Method: port 0 on loopback, and a client that is a few socket calls, so that a test can be as slow as it likes.

#include "metrics/export/metrics_server.h"

#include "metrics/export/listen_socket.h"
#include "tests/metrics/export/sample_snapshot.h"
#include "tests/metrics/export/self_signed.h"
#include "tests/metrics/export/test_client.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace rooflined;
using namespace rooflined::metrics_export;
using std::chrono::milliseconds;

namespace {

MetricsServer::Options quick_options() {
  MetricsServer::Options options;
  options.listen = "127.0.0.1:0";
  options.version = "1.2.3";
  return options;
}

SnapshotSource sample_source() {
  auto snapshot = std::make_shared<const Snapshot>(sample_snapshot());
  return [snapshot] { return snapshot; };
}

const char* const kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t open_fds() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace

TEST_CASE("a scrape over a socket, twice on one connection, and two requests at once") {
  MetricsServer server(quick_options(), sample_source());
  REQUIRE(server.start().ok());
  CHECK(server.address() == "127.0.0.1:" + std::to_string(server.port()));
  TestClient client(server.port());
  client.send(kGet);
  CHECK(client.response().starts_with("HTTP/1.1 200 OK\r\n"));
  client.send(kGet);
  CHECK(client.response().find("rooflined_mbu_ratio{") != std::string::npos);
  client.send(std::string(kGet) + kGet);
  CHECK(client.response().starts_with("HTTP/1.1 200"));
  CHECK(client.response().starts_with("HTTP/1.1 200"));
}

TEST_CASE("a request that comes byte by byte is answered") {
  MetricsServer server(quick_options(), sample_source());
  REQUIRE(server.start().ok());
  TestClient client(server.port());
  for (const char byte : std::string("GET /healthz HTTP/1.1\r\n\r\n")) client.send(std::string(1, byte));
  CHECK(client.response().ends_with("ok\n"));
}

TEST_CASE("E19: a second daemon on the same port fails with the address and the reason") {
  MetricsServer first(quick_options(), sample_source());
  REQUIRE(first.start().ok());
  MetricsServer::Options options = quick_options();
  options.listen = first.address();
  MetricsServer second(options, sample_source());
  const Status status = second.start();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kBusy);
  CHECK(status.error().message() == "cannot listen on " + first.address() + ": Address already in use");
  TestClient client(first.port());
  client.send(kGet);
  CHECK(client.response().starts_with("HTTP/1.1 200"));
}

TEST_CASE("start and stop again, from several threads") {
  MetricsServer server(quick_options(), sample_source());
  REQUIRE(server.start().ok());
  CHECK(server.start().ok());
  server.stop();
  server.stop();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&server] {
      for (int j = 0; j < 20; ++j) {
        static_cast<void>(server.start());
        server.stop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(server.start().ok());
  TestClient client(server.port());
  client.send(kGet);
  CHECK(client.response().starts_with("HTTP/1.1 200"));
}

TEST_CASE("E17: a kernel without IPv6 gets the IPv4 wildcard") {
  const auto without_ipv6 = [](int family) {
    if (family != AF_INET6) return make_tcp_socket(family);
    errno = EAFNOSUPPORT;
    return -1;
  };
  for (const char* listen : {":0", "[::]:0"}) {
    const auto socket = open_listen_socket(listen, without_ipv6);
    REQUIRE(socket.ok());
    CHECK(socket->address == "0.0.0.0:" + std::to_string(socket->port));
  }
  CHECK_FALSE(open_listen_socket("[::1]:0", without_ipv6).ok());
}

TEST_CASE("addresses that cannot be listened on") {
  for (const char* listen : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1", "::1:80", "[::1:80",
                             "a b:1", "http://x:1", "192.0.2.1:0", "[]:1"}) {
    INFO(listen);
    const auto socket = open_listen_socket(listen);
    REQUIRE_FALSE(socket.ok());
    CHECK_FALSE(socket.error().detail.empty());
  }
}

TEST_CASE("E21: idle connections neither hold up a scrape nor use up descriptors") {
  MetricsServer::Options options = quick_options();
  options.limits.connections_max = 16;
  MetricsServer server(options, sample_source());
  REQUIRE(server.start().ok());
  const std::size_t before = open_fds();
  std::vector<std::unique_ptr<TestClient>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<TestClient>(server.port()));
  TestClient client(server.port());
  client.send(kGet);
  const std::string response = client.response();
  CHECK(response.starts_with("HTTP/1.1 200"));
  // One descriptor for each client here, and at most the bound on the other side.
  CHECK(open_fds() <= before + idle.size() + 1 + options.limits.connections_max);
  const std::string limit = "rooflined_web_connections_dropped_total{reason=\"limit\"} ";
  const std::size_t at = response.find(limit);
  REQUIRE(at != std::string::npos);
  CHECK(std::stoi(response.substr(at + limit.size())) >= 200 - 16);
}

TEST_CASE("E27: a request that does not end is closed, and others are served meanwhile") {
  MetricsServer::Options options = quick_options();
  options.limits.request_time_max = milliseconds(150);
  MetricsServer server(options, sample_source());
  REQUIRE(server.start().ok());
  TestClient slow(server.port());
  slow.send("GET /metrics HT");
  TestClient quick(server.port());
  quick.send(kGet);
  CHECK(quick.response().starts_with("HTTP/1.1 200"));
  CHECK(slow.closed_by_server());
  quick.send(kGet);
  CHECK(quick.response().find("rooflined_web_connections_dropped_total{reason=\"timeout\"} 1\n") != std::string::npos);
}

TEST_CASE("a connection that is kept alive ends after the idle time") {
  MetricsServer::Options options = quick_options();
  options.limits.idle_time_max = milliseconds(50);
  MetricsServer server(options, sample_source());
  REQUIRE(server.start().ok());
  TestClient client(server.port());
  client.send(kGet);
  CHECK(client.response().starts_with("HTTP/1.1 200"));
  CHECK(client.closed_by_server());
}

TEST_CASE("a head that is too large is refused") {
  MetricsServer server(quick_options(), sample_source());
  REQUIRE(server.start().ok());
  TestClient client(server.port());
  client.send("GET /metrics HTTP/1.1\r\nX: " + std::string(20'000, 'x'));
  CHECK(client.response().starts_with("HTTP/1.1 431"));
  CHECK(client.closed_by_server());
}

TEST_CASE("a client that does not take its responses holds neither thread nor memory") {
  MetricsServer::Options options = quick_options();
  options.limits.waiting_bytes_max = 1024 * 1024;
  auto snapshot = std::make_shared<Snapshot>();
  for (int i = 0; i < 200; ++i) snapshot->targets.push_back(sample_target("t" + std::to_string(i), "m", 1));
  MetricsServer server(options, [snapshot] { return snapshot; });
  REQUIRE(server.start().ok());
  // Each asks for 2 MB and reads nothing; socket buffers take some of it.
  std::vector<std::unique_ptr<TestClient>> stuck;
  for (int i = 0; i < 12; ++i) {
    stuck.push_back(std::make_unique<TestClient>(server.port(), 4096));
    for (int j = 0; j < 4; ++j) stuck.back()->send(kGet);
  }
  TestClient client(server.port());
  client.send("GET /healthz HTTP/1.1\r\n\r\n");
  CHECK(client.response().ends_with("ok\n"));
}

TEST_CASE("a body is not read, and its sender still sees the answer") {
  MetricsServer server(quick_options(), sample_source());
  REQUIRE(server.start().ok());
  TestClient client(server.port());
  client.send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'b'));
  CHECK(client.response().starts_with("HTTP/1.1 405"));
  CHECK(client.closed_by_server());
}

TEST_CASE("TLS: a scrape, and a client that speaks plain HTTP") {
  const SelfSigned pair;
  MetricsServer::Options options = quick_options();
  options.tls_certificate = pair.certificate_path();
  options.tls_key = pair.key_path();
  MetricsServer server(options, sample_source());
  REQUIRE(server.start().ok());
  TestClient plain(server.port());
  plain.send(kGet);
  CHECK(plain.closed_by_server());
  TestClient client(server.port());
  REQUIRE(client.start_tls());
  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    CHECK(client.response().find("rooflined_mbu_ratio{") != std::string::npos);
  }
}

TEST_CASE("TLS: a renewed certificate is taken without a restart, half a renewal is not") {
  const SelfSigned old_pair;
  const SelfSigned new_pair;
  const TemporaryFolder folder;
  MetricsServer::Options options = quick_options();
  options.tls_certificate = folder.path() + "/certificate.pem";
  options.tls_key = folder.path() + "/key.pem";
  // As a renewal does it: a new file takes the name of the old one.
  const auto put = [](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to + ".new");
    std::filesystem::rename(to + ".new", to);
  };
  put(old_pair.certificate_path(), options.tls_certificate);
  put(old_pair.key_path(), options.tls_key);
  MetricsServer server(options, sample_source());
  REQUIRE(server.start().ok());
  const auto shown = [&server] {
    TestClient client(server.port());
    REQUIRE(client.start_tls());
    client.send(kGet);
    CHECK(client.response().starts_with("HTTP/1.1 200"));
    return client.certificate();
  };
  TestClient kept(server.port());
  REQUIRE(kept.start_tls());
  CHECK(shown() == text_of(old_pair.certificate_path()));
  put(new_pair.certificate_path(), options.tls_certificate);
  CHECK(shown() == text_of(old_pair.certificate_path()));
  put(new_pair.key_path(), options.tls_key);
  CHECK(shown() == text_of(new_pair.certificate_path()));
  std::filesystem::remove(options.tls_key);
  CHECK(shown() == text_of(new_pair.certificate_path()));
  kept.send(kGet);
  CHECK(kept.response().starts_with("HTTP/1.1 200"));
}

TEST_CASE("TLS files that are missing or do not fit together are named") {
  const SelfSigned pair;
  const SelfSigned other;
  MetricsServer::Options options = quick_options();
  options.tls_certificate = pair.certificate_path();
  CHECK_FALSE(MetricsServer(options, sample_source()).start().ok());
  options.tls_key = other.key_path();
  CHECK(MetricsServer(options, sample_source()).start().error().where.starts_with("tls_key "));
  options.tls_certificate = "/no/such/file.pem";
  CHECK(MetricsServer(options, sample_source()).start().error().where == "tls_certificate /no/such/file.pem");
}
