#include "daemon/exposure.h"

#include "tests/support/catch.h"

#include <utility>

using namespace rooflined::daemon;

TEST_CASE("what can be reached from other hosts") {
  const std::pair<const char*, bool> rows[] = {
      {"127.0.0.1:10074", false}, {"127.8.9.1:1", false}, {"[::1]:1", false},       {"[::ffff:127.0.0.1]:1", false},
      {"localhost:1", false},     {":10074", true},       {"0.0.0.0:1", true},      {"[::]:1", true},
      {"10.1.2.3:1", true},       {"[fe80::1]:1", true},  {"node.example:1", true},
  };
  for (const auto& [listen, open] : rows) {
    INFO(listen);
    CHECK(open_to_network(listen) == open);
  }
}

TEST_CASE("an open endpoint is named unless it asks for a password") {
  rooflined::config::WebConfig web;
  CHECK_FALSE(exposure_of(web));
  web.listen = ":10074";
  REQUIRE(exposure_of(web));
  CHECK(*exposure_of(web) ==
        "/metrics on :10074 is open to the network and asks for no password ([web] basic_auth_users, tls_certificate, "
        "tls_key)");
  web.basic_auth_users["prometheus"] = "$2y$10$abc";
  CHECK_FALSE(exposure_of(web));
}
