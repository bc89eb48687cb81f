// Goal: 32 targets fit into 40 kB on the wire. Method: gzip as a scraper gets it, from the server.

#include "metrics/export/metrics_server.h"
#include "tests/metrics/export/sample_snapshot.h"
#include "tests/metrics/export/test_client.h"
#include "tests/support/catch.h"

#include <memory>

using namespace rooflined;
using namespace rooflined::metrics_export;

TEST_CASE("32 targets take at most 40 kB gzipped") {
  auto snapshot = std::make_shared<Snapshot>(sample_snapshot());
  snapshot->targets.clear();
  for (unsigned i = 0; i < 32; ++i) {
    snapshot->targets.push_back(
        sample_target("llama.cpp-" + std::to_string(8080 + i), "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf", i));
  }
  MetricsServer::Options options;
  options.listen = "127.0.0.1:0";
  MetricsServer server(options, [snapshot] { return snapshot; });
  REQUIRE(server.start().ok());
  TestClient client(server.port());
  client.send("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
  const std::string gzipped = client.response();
  CAPTURE(gzipped.size());
  CHECK(gzipped.find("Content-Encoding: gzip\r\n") != std::string::npos);
  CHECK(gzipped.size() <= 40'000);
}
