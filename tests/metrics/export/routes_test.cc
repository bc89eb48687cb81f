// Goal: what each path answers, who may see it, and what the page for people says.

#include "metrics/export/routes.h"
#include "tests/metrics/export/sample_snapshot.h"
#include "tests/support/catch.h"

#include <memory>

using namespace rooflined;
using namespace rooflined::metrics_export;

namespace {

struct Fixture {
  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>(sample_snapshot());
  MonotonicTime now;
  std::map<std::string, std::string> users;
  std::string listen_host = "node7.example.org";

  Routes routes() {
    return Routes(
        {"1.2.3", ROOFLINED_TEST_DATA "/proc", listen_host, users}, [this] { return snapshot; },
        [] { return WebCounters(); }, [this] { return now; });
  }
  HttpResponse get(const std::string& path, const std::string& host = "localhost:10074") {
    return routes().answer({"GET", path, host, ""});
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each path answers with its type") {
  Fixture fixture;
  CHECK(fixture.get("/metrics").content_type == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(contains(fixture.get("/metrics").body, "rooflined_mbu_ratio{"));
  CHECK(contains(fixture.get("/metrics").body, "process_open_fds 3\n"));
  CHECK_FALSE(contains(fixture.get("/metrics").body, "# EOF"));
  CHECK(fixture.get("/healthz").status == 200);
  CHECK(fixture.get("/readyz").status == 200);
  CHECK(fixture.get("/api/v1/state").content_type == "application/json");
  CHECK(fixture.get("/").content_type == "text/html; charset=utf-8");
  CHECK(fixture.get("/nothing").status == 404);
  CHECK(fixture.get("/metrics/").status == 404);
}

TEST_CASE("E25: a method that changes things is refused, an unknown path is unknown for it as well") {
  Fixture fixture;
  const HttpResponse response = fixture.routes().answer({"POST", "/metrics", "localhost", ""});
  CHECK(response.status == 405);
  CHECK(std::find(response.headers.begin(), response.headers.end(),
                  std::pair<std::string, std::string>("Allow", "GET, HEAD")) != response.headers.end());
  CHECK(fixture.routes().answer({"POST", "/nothing", "localhost", ""}).status == 404);
  CHECK(fixture.routes().answer({"HEAD", "/metrics", "localhost", ""}).status == 200);
}

TEST_CASE("readiness says what is missing") {
  Fixture fixture;
  fixture.snapshot = nullptr;
  CHECK(fixture.get("/readyz").status == 503);
  CHECK(fixture.get("/readyz").body == "no snapshot yet\n");
  CHECK(fixture.get("/healthz").status == 200);
  CHECK(fixture.get("/api/v1/state").status == 503);
  CHECK(fixture.get("/metrics").status == 200);
  CHECK(contains(fixture.get("/").body, "Starting."));
  Snapshot down = sample_snapshot();
  down.collectors[0].up = false;
  fixture.snapshot = std::make_shared<const Snapshot>(down);
  CHECK(fixture.get("/readyz").status == 503);
  CHECK(fixture.get("/readyz").body == "the capture is down\n");
}

TEST_CASE("the page and the API answer to known hosts only, a scrape to any") {
  Fixture fixture;
  struct Row {
    const char* host;
    bool allowed;
  };
  for (const Row& row :
       {Row{"localhost", true}, Row{"LOCALHOST:10074", true}, Row{"localhost.", true}, Row{"127.0.0.1:10074", true},
        Row{"10.1.2.3", true}, Row{"[::1]:10074", true}, Row{"[fe80::1]", true}, Row{"node7.example.org:10074", true},
        Row{"evil.example.com", false}, Row{"localhost.evil.com", false}, Row{"127.0.0.1.evil.com", false},
        Row{"", false}, Row{"[", false}, Row{":80", false}, Row{"[evil]", false}}) {
    INFO(row.host);
    CHECK(fixture.routes().host_allowed(row.host) == row.allowed);
    CHECK(fixture.get("/", row.host).status == (row.allowed ? 200 : 403));
    CHECK(fixture.get("/api/v1/state", row.host).status == (row.allowed ? 200 : 403));
    CHECK(fixture.get("/metrics", row.host).status == 200);
  }
}

TEST_CASE("passwords: right, wrong, missing, unknown user, and no more than one check a second") {
  Fixture fixture;
  fixture.users = {{"prometheus", "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"}};
  Routes routes = fixture.routes();
  const auto status = [&routes](const std::string& authorization) {
    return routes.answer({"GET", "/metrics", "x", authorization}).status;
  };
  const std::string right = "Basic cHJvbWV0aGV1czpzZWNyZXQ=";  // prometheus:secret
  const std::string wrong = "Basic cHJvbWV0aGV1czpndWVzcw==";  // prometheus:guess
  const std::string stranger = "Basic c3RyYW5nZXI6c2VjcmV0";   // stranger:secret
  CHECK(status("") == 401);
  CHECK(status("Bearer abc") == 401);
  CHECK(status("Basic !!!!") == 401);
  CHECK(status(wrong) == 401);
  CHECK(status(right) == 503);  // within the same second
  fixture.now += std::chrono::seconds(1);
  CHECK(status(right) == 200);
  CHECK(status(right) == 200);  // remembered
  CHECK(status(wrong) == 503);
  CHECK(status(right) == 200);  // a guesser does not lock it out
  fixture.now += std::chrono::seconds(1);
  CHECK(status(stranger) == 401);
  fixture.now += std::chrono::minutes(11);
  CHECK(status(right) == 200);
  const HttpResponse denied = routes.answer({"GET", "/", "localhost", ""});
  CHECK(denied.status == 401);
  CHECK(denied.headers.at(0).first == "WWW-Authenticate");
}

TEST_CASE("the page shows figures, escapes names, and never more than the ceiling") {
  Fixture fixture;
  Snapshot snapshot = sample_snapshot();
  snapshot.targets[0].model = "<script>alert(1)</script>";
  fixture.snapshot = std::make_shared<const Snapshot>(snapshot);
  std::string page = fixture.get("/").body;
  CHECK_FALSE(contains(page, "<script"));
  CHECK(contains(page, "&lt;script&gt;"));
  CHECK(contains(page, "46.2 %"));
  CHECK(contains(page, "<td>62.5</td>"));
  CHECK(contains(page, "gone"));
  CHECK(contains(page, "Ceiling 28.0 GB/s, measured."));
  snapshot.targets[0].windows[0].mbu_ratio = 1.04;
  fixture.snapshot = std::make_shared<const Snapshot>(snapshot);
  page = fixture.get("/").body;
  CHECK(contains(page, "at or above the measured ceiling"));
  CHECK_FALSE(contains(page, "104"));
  snapshot.targets[0].caveats.emplace_back("cache_assisted");
  snapshot.targets[0].ceiling_exceeded = false;
  fixture.snapshot = std::make_shared<const Snapshot>(snapshot);
  page = fixture.get("/").body;
  CHECK(contains(page, "<td>partly served from cache</td>"));
  CHECK_FALSE(contains(page, "at or above"));
}
