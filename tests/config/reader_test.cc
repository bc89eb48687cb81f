// Goal: the settings file is read into Config, and every fault is named with its place and what would be right.
// Method: tables of text and faults; no test depends on the order in which toml++ walks a table.

#include "config/reader.h"
#include "tests/support/catch.h"

#include <filesystem>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::config;

namespace {

std::vector<std::string> faults(std::string_view text) {
  std::vector<std::string> lines;
  for (const ConfigError& error : read_config_text(text).errors) lines.push_back(error.text("f"));
  return lines;
}

// Requires: the text has no faults.
Config good(std::string_view text) {
  ConfigResult result = read_config_text(text);
  for (const ConfigError& error : result.errors) UNSCOPED_INFO(error.text("f"));
  REQUIRE(result.ok());
  return result.config;
}

}  // namespace

TEST_CASE("an empty file is the defaults") {
  CHECK(good("") == Config{});
  CHECK(good("# only words\n") == Config{});
  CHECK(good("[web]\n[ceiling]\n[windows]\n") == Config{});
}

TEST_CASE("every setting reaches its member") {
  const Config config = good(R"(
[web]
listen = "[::1]:9000"
tls_certificate = "/c.pem"
tls_key = "/k.pem"
[web.basic_auth_users]
prometheus = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
[state]
directory = "/state"
[capture]
interface = "eth0"
ports = [1, 65535]
[server]
identify = false
identify_token_file = "/token"
[windows]
spans = ["10s", "1m", "1h"]
[ceiling]
measure = "never"
interval = "90m"
idle_for = "1500ms"
max_age = "2w"
repetitions = 9
working_set = "2GiB"
peak_bytes_per_second = "204.8GB/s"
[limits]
cpu = 0.1
models_max = 5
[[target]]
name = "chat"
port = 8080
model = "/models/m.gguf"
replicas = 2
pipeline_parallel = 4
device = "gpu"
gpus = 8
rated_bytes_per_second = 3.35e12
kv_cache_type = "q8_0,f16"
weight_bits = 8
expert_skew = 0.8
speculative = true
numa_nodes = [0, 2]
identify = true
identify_token_file = "/t2"
dense_bytes_per_pass = 1000000
head_bytes = "1MB"
moe_layers = 48
experts = 128
experts_per_token = 7.5
expert_bytes = 9437184
kv_bytes_per_token = 0
state_bytes_per_sequence = 4096
)");
  CHECK(config.web.listen == "[::1]:9000");
  CHECK(config.web.tls_certificate == "/c.pem");
  CHECK(config.web.tls_key == "/k.pem");
  CHECK(config.web.basic_auth_users.at("prometheus").size() == 60);
  CHECK(config.state.directory == "/state");
  CHECK(config.capture.interface == "eth0");
  CHECK(config.capture.ports == std::vector<std::uint16_t>{1, 65535});
  CHECK_FALSE(config.server.identify);
  CHECK(config.server.identify_token_file == "/token");
  REQUIRE(config.windows.spans.size() == 3);
  CHECK(config.windows.spans[2] == WindowSpan{"1h", std::chrono::hours(1)});
  CHECK(config.ceiling.measure == MeasureCeiling::kNever);
  CHECK(config.ceiling.interval == std::chrono::minutes(90));
  CHECK(config.ceiling.idle_for == std::chrono::milliseconds(1500));
  CHECK(config.ceiling.max_age == std::chrono::hours(14 * 24));
  CHECK(config.ceiling.repetitions == 9);
  CHECK(config.ceiling.working_set == 2 * kGiB);
  CHECK(config.ceiling.peak_bytes_per_second.value() == Approx(204.8e9));
  CHECK(config.limits.cpu == Approx(0.1));
  CHECK(config.limits.models_max == 5);
  REQUIRE(config.targets.size() == 1);
  TargetConfig target;
  target.name = "chat";
  target.port = 8080;
  target.model = "/models/m.gguf";
  target.replicas = 2;
  target.pipeline_parallel = 4;
  target.device = Device::kGpu;
  target.gpus = 8;
  target.rated_bytes_per_second = 3.35e12;
  target.kv_cache_type = "q8_0,f16";
  target.weight_bits = 8;
  target.expert_skew = 0.8;
  target.speculative = true;
  target.numa_nodes = {0, 2};
  target.identify = true;
  target.identify_token_file = "/t2";
  target.dense_bytes_per_pass = 1e6;
  target.head_bytes = 1e6;
  target.moe_layers = 48;
  target.experts = 128;
  target.experts_per_token = 7.5;
  target.expert_bytes = 9437184;
  target.kv_bytes_per_token = 0;
  target.state_bytes_per_sequence = 4096;
  CHECK(config.targets[0] == target);
}

TEST_CASE("one fault each, with its place and what would be right") {
  struct Row {
    const char* text;
    const char* fault;
  };
  const std::vector<Row> rows = {
      {"[web]\nlisten = 80\n", "f:2:10: expected a string, got an integer"},
      {"[web]\nlisten = \"localhost\"\n",
       "f:2:10: \"localhost\" is no address to listen on: write ADDRESS:PORT, [IPV6]:PORT or :PORT"},
      {"[web]\nlisten = \"::1:80\"\n",
       "f:2:10: \"::1:80\" is no address to listen on: write ADDRESS:PORT, [IPV6]:PORT or :PORT"},
      {"[web]\nlitsen = \":1\"\n", "f:2:1: unknown key \"litsen\" in [web]: did you mean \"listen\"?"},
      {"[wbe]\n", "f:1:2: unknown key \"wbe\": did you mean \"web\"?"},
      {"[completely_different]\n",
       "f:1:2: unknown key \"completely_different\": known are web, state, capture, server, windows, ceiling, limits, "
       "target"},
      {"web = 1\n", "f:1:7: expected a table: write [web]"},
      {"[web]\ntls_key = \"/k\"\n", "f:1:1: tls_certificate and tls_key belong together"},
      {"[web]\nbasic_auth_users = {a = \"secret\"}\n",
       "f:2:25: expected a bcrypt hash of 60 characters, as in \"$2y$10$…\" (htpasswd -nBC 10 USER prints one)"},
      {"[state]\ndirectory = \"\"\n", "f:2:13: must not be empty"},
      {"[state]\ndirectory = \"a\\u0000b\"\n", "f:2:13: must not hold control characters"},
      {"[capture]\nports = []\n", "f:2:9: expected an array of 1 to 64 port numbers"},
      {"[capture]\nports = [80, 0]\n", "f:2:14: 0 is not between 1 and 65535"},
      {"[capture]\nports = [80, 80]\n", "f:2:14: port 80 is listed twice"},
      {"[server]\nidentify = \"no\"\n", "f:2:12: expected true or false, got a string"},
      {"[windows]\nspans = [\"1 minute\"]\n",
       "f:2:10: \"1 minute\" is no duration: write a number and one of ms, s, m, h, d, w, as in \"60s\""},
      {"[windows]\nspans = [\"2h\"]\n", "f:2:10: \"2h\" is not between 5s and 1h"},
      {"[windows]\nspans = [\"60s\", \"1m\"]\n", "f:2:17: this span is listed twice"},
      {"[ceiling]\ninterval = 6\n", "f:2:12: expected a duration with a unit, as in \"60s\" or \"6h\", got an integer"},
      {"[ceiling]\ninterval = \"8d\"\n", "f:2:12: max_age must not be shorter than interval"},
      {"[ceiling]\nrepetitions = 4\n", "f:2:15: 4 is not between 5 and 100"},
      {"[ceiling]\nrepetitions = 5.0\n", "f:2:15: expected an integer, got a float"},
      {"[ceiling]\nmeasure = \"sometimes\"\n", "f:2:11: \"sometimes\" is none of \"auto\", \"always\", \"never\""},
      {"[ceiling]\nworking_set = \"2 gigs\"\n",
       "f:2:15: \"2 gigs\" is no size: write \"auto\", a number of bytes, or one with a unit as in \"2GiB\" or "
       "\"204.8GB\""},
      {"[ceiling]\npeak_bytes_per_second = -1\n", "f:2:25: -1 bytes are not between 1000000 and 1e+18"},
      {"[ceiling]\npeak_bytes_per_second = nan\n", "f:2:25: nan bytes are not between 1000000 and 1e+18"},
      {"[target]\nname = \"a\"\nport = 1\n", "f:1:1: expected tables: write [[target]] with two brackets on each side"},
      {"[[target]]\nport = 1\n", "f:1:1: a target needs a name"},
      {"[[target]]\nname = \"a\"\n", "f:1:1: a target needs a port"},
      {"[[target]]\nname = \"a\"\nport = 1\ndevcie = \"cpu\"\n",
       "f:4:1: unknown key \"devcie\" in [[target]]: did you mean \"device\"?"},
      {"[[target]]\nname = \"a\"\nport = 1\ndevice = \"npu\"\n",
       "f:4:10: \"npu\" is none of \"auto\", \"cpu\", \"gpu\""},
      {"[[target]]\nname = \"a\"\nport = 1\ndevice = \"cpu\"\ngpus = 2\n",
       "f:5:8: gpus has no meaning with device = \"cpu\""},
      {"[[target]]\nname = \"a\"\nport = 1\nexpert_skew = 1.5\n", "f:4:15: 1.5 is not between 0.01 and 1"},
      {"[[target]]\nname = \"a\"\nport = 1\nnuma_nodes = [0, -1]\n",
       "f:4:18: expected the number of a NUMA node, 0 to 1023"},
      {"[[target]]\nname = \"a\"\nport = 1\nnuma_nodes = [1, 1]\n", "f:4:18: node 1 is listed twice"},
      {"[[target]]\nname = \"a\"\nport = 1\nnuma_nodes = 1\n",
       "f:4:14: expected an array of NUMA node numbers, as in [0]"},
      {"[[target]]\nname = \"a\"\nport = 1\nspeculative = \"yes\"\n",
       "f:4:15: expected \"auto\", true or false, got a string"},
      {"[[target]]\nname = \"a\"\nport = 1\n[[target]]\nname = \"a\"\nport = 2\n",
       "f:5:8: the name \"a\" is taken by line 2"},
      {"[[target]]\nname = \"a\"\nport = 1\n[[target]]\nname = \"b\"\nport = 1\n",
       "f:6:8: port 1 is taken by the target of line 3"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const std::vector<std::string> found = faults(row.text);
    REQUIRE(found.size() == 1);
    CHECK(found[0] == row.fault);
  }
}

TEST_CASE("a cache type is one or two known ones") {
  const std::string head = "[[target]]\nname = \"a\"\nport = 1\nkv_cache_type = ";
  for (const char* known : {"\"auto\"", "\"f16\"", "\"q8_0,f16\""}) CHECK(faults(head + known).empty());
  for (const char* wrong : {"\"\"", "\"f17\"", "\"f16,\"", "\",f16\"", "\"f16,f16,f16\"", "8"}) {
    INFO(wrong);
    CHECK(faults(head + wrong).size() == 1);
  }
}

TEST_CASE("all faults at once, in the order of the file, and the rest is still read") {
  const ConfigResult result = read_config_text(
      "[ceiling]\nidle_for = \"never\"\nmax_age = 7\ninterval = \"1h\"\n[web]\nport = 80\nlisten = \":1\"\n[zzz]\n");
  REQUIRE(result.errors.size() == 4);
  CHECK(result.errors[0].line == 2);
  CHECK(result.errors[1].line == 3);
  CHECK(result.errors[2].line == 6);
  CHECK(result.errors[3].line == 8);
  CHECK(result.config.web.listen == ":1");
  CHECK(result.config.ceiling.interval == std::chrono::hours(1));
  CHECK(result.config.ceiling.idle_for == CeilingConfig{}.idle_for);
}

TEST_CASE("broken TOML is one fault with its place") {
  for (const char* text :
       {"[web\n", "listen = \n", "a = 1\na = 2\n", "[web]\nlisten = \"\xff\"\n", "= 1\n", "x = 1e999999x"}) {
    INFO(text);
    const ConfigResult result = read_config_text(text);
    REQUIRE(result.errors.size() == 1);
    CHECK(result.errors[0].line >= 1);
    CHECK(result.errors[0].column >= 1);
    CHECK_FALSE(result.errors[0].message.empty());
  }
}

TEST_CASE("bounds: size of the file, number of faults and of targets, nesting") {
  CHECK(read_config_text(std::string(2'000'000, '#')).errors.size() == 1);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "unknown" + std::to_string(i) + " = 1\n";
  CHECK(read_config_text(many).errors.size() == 101);
  std::string targets;
  for (int i = 1; i <= 300; ++i)
    targets += "[[target]]\nname = \"t" + std::to_string(i) + "\"\nport = " + std::to_string(i) + "\n";
  CHECK(read_config_text(targets).errors.size() == 1);
  CHECK_FALSE(read_config_text("a = " + std::string(100'000, '[')).ok());
}

TEST_CASE("a hash is never repeated in a fault") {
  const auto found = faults("[web]\nbasic_auth_users = {a = \"hunter2\", \"b:c\" = \"hunter3\", d = 5}\n");
  CHECK(found.size() == 3);
  for (const std::string& line : found) CHECK(line.find("hunter") == std::string::npos);
}

TEST_CASE("files: missing, a folder, readable") {
  const ConfigResult missing = read_config_file("/no/such/file.toml");
  CHECK(missing.missing);
  REQUIRE(missing.errors.size() == 1);
  CHECK(missing.errors[0].text("/no/such/file.toml") == "/no/such/file.toml: No such file or directory");
  const ConfigResult folder = read_config_file(std::filesystem::temp_directory_path().string());
  CHECK_FALSE(folder.missing);
  CHECK_FALSE(folder.ok());
}

TEST_CASE("a key of tens of thousands of parts is a fault of its line, and no depth of recursion") {
  std::string text = "[web]\na";
  for (int i = 0; i < 100'000; ++i) text += ".a";
  const ConfigResult result = read_config_text(text + "=1\n");
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].line == 2);
}
