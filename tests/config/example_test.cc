// Goal: config/rooflined.toml says the truth: it parses, the values that it shows are the defaults, and it has every
// key. Method: its convention is "# words" for prose and "#key = value" for a setting; the tests uncomment the
// settings.

#include "config/reader.h"
#include "tests/support/catch.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace rooflined::config;

namespace {

const std::string kExample = ROOFLINED_SOURCE_DIR "/config/rooflined.toml";

std::vector<std::string> example_lines() {
  std::ifstream file(kExample);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() > 50);
  return lines;
}

bool is_setting(const std::string& line) {
  return line.size() > 1 && line[0] == '#' && line[1] != ' ';
}

std::string uncommented() {
  std::string text;
  for (const std::string& line : example_lines()) text += (is_setting(line) ? line.substr(1) : line) + "\n";
  return text;
}

}  // namespace

TEST_CASE("the example as it is shipped changes nothing") {
  const ConfigResult result = read_config_file(kExample);
  CHECK(result.ok());
  CHECK(result.config == Config{});
}

TEST_CASE("with every setting uncommented it still is the defaults, and one target of defaults") {
  const ConfigResult result = read_config_text(uncommented());
  for (const ConfigError& error : result.errors) UNSCOPED_INFO(error.text("rooflined.toml"));
  REQUIRE(result.ok());
  Config expected;
  TargetConfig target;
  target.name = "chat";
  target.port = 8080;
  expected.targets = {target};
  CHECK(result.config == expected);
}

TEST_CASE("each setting can be uncommented alone, with its section") {
  std::string section;
  for (const std::string& line : example_lines()) {
    if (!is_setting(line)) continue;
    if (line.starts_with("#[")) {
      section = line.substr(1);
      continue;
    }
    INFO(line);
    const bool target = section == "[[target]]";
    const std::string needed =
        !target || line.starts_with("#name") || line.starts_with("#port") ? "" : "name = \"chat\"\nport = 8080\n";
    const ConfigResult result = read_config_text(section + "\n" + needed + line.substr(1) + "\n");
    CHECK(result.errors.size() == (target && needed.empty() ? 1u : 0u));
  }
}

TEST_CASE("the example has exactly the keys that the code knows, in its order") {
  std::vector<std::string> shown;
  std::string section;
  for (const std::string& line : example_lines()) {
    if (!is_setting(line)) continue;
    const std::string setting = line.substr(1);
    if (setting.starts_with('[')) {
      section = setting.substr(setting.find_first_not_of('['));
      section.resize(section.find(']'));
    } else {
      shown.push_back(section + "." + setting.substr(0, setting.find(' ')));
    }
  }
  CHECK(shown == known_keys());
}
