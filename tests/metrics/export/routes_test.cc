// Goal: what each path answers, who may see it, and what the page for people says.

#include "metrics/export/routes.h"
#include "metrics/export/page.h"
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
  CHECK(fixture.get("/api/v1/history").content_type == "application/json");
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
  CHECK(fixture.get("/").status == 200);
  CHECK(fixture.get("/api/v1/history").status == 503);
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
    CHECK(fixture.get("/api/v1/history", row.host).status == (row.allowed ? 200 : 403));
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

TEST_CASE("the page is one file that allows nothing but itself") {
  Fixture fixture;
  const HttpResponse page = fixture.get("/");
  std::string policy;
  for (const auto& [name, value] : page.headers) {
    if (name == "Content-Security-Policy") policy = value;
  }
  CHECK(contains(policy, "default-src 'none'; script-src 'sha256-"));
  CHECK(contains(policy, "'; connect-src 'self'; "));
  CHECK_FALSE(contains(policy, "unsafe"));
  CHECK(contains(page.body, "\nasync function poll("));
  CHECK_FALSE(contains(page.body, "@SCRIPT@"));
  // Nothing from anywhere else; the one address with a scheme names SVG, and is not fetched.
  for (const char* part : {" src=", "@import", "url(", "https:"}) {
    INFO(part);
    CHECK_FALSE(contains(page.body, part));
  }
  CHECK(page.body.find("http:") == page.body.find("http://www.w3.org/2000/svg"));
  CHECK(page.body.find("http:") == page.body.rfind("http:"));
}

TEST_CASE("the policy names style and script by their hashes") {
  // printf 'a' | openssl dgst -sha256 -binary | base64
  const std::string policy = page_policy("<style>a</style><script>b</script>");
  CHECK(contains(policy, "style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"));
  CHECK(contains(policy, "script-src 'sha256-PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0='"));
}
