#include "daemon/deploy_state.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace rooflined;
using namespace rooflined::daemon;

namespace {

KeptDeploys sample() {
  KeptDeploys kept;
  kept.key = {"llama.cpp", "m.gguf", 8080, 0};
  kept.boot_id = "b00t";
  kept.socket = 4711;
  kept.learned.prompts = {3.75, 12};
  kept.learned.answers = {{4.25, 9}, 0.5, 0.0625, 10};
  kept.state.current.generation = 3;
  kept.state.current.cause = server::DeployCause::kVersion;
  kept.state.current.began = LineTime::from_ns(1'700'000'000'000'000'000);
  kept.state.current.identity.version = "b6123";
  kept.state.current.change = {2, DeployChange{0.8, 0.75, 0.85, 24}, std::nullopt};
  kept.state.first_token = LineTime::from_ns(1'700'000'005'000'000'000);
  kept.state.slices = {{170'000'001, 2.0794F, 6.5F, -3.25F, 23.125F, true}, {170'000'002, 0, 6.5F, -3.25F, 0, false}};
  kept.state.past = {server::Deploy()};
  kept.state.baselines = {{2, kept.state.current.identity, kept.state.slices}};
  return kept;
}

}  // namespace

TEST_CASE("what is written is read again") {
  const TemporaryFolder folder;
  REQUIRE(save_deploys(folder.path(), {sample()}));
  const auto loaded = load_deploys(folder.path());
  REQUIRE(loaded.size() == 1);
  CHECK(deploy_state_text(loaded) == deploy_state_text({sample()}));
  const server::DeployState& state = loaded[0].state;
  CHECK(loaded[0].key == sample().key);
  CHECK(loaded[0].socket == 4711);
  CHECK(loaded[0].learned.prompts.characters_per_token == 3.75);
  CHECK(loaded[0].learned.answers.ratio.learned == 9);
  CHECK(loaded[0].learned.answers.error_of_text == 0.0625);
  CHECK(loaded[0].learned.answers.learned == 10);
  CHECK(state.current.cause == server::DeployCause::kVersion);
  CHECK(state.current.change.rate->high == 0.85);
  CHECK_FALSE(state.current.change.itl);
  REQUIRE(state.slices.size() == 2);
  CHECK(state.slices[0].log_batch == Approx(2.0794));
  CHECK(state.slices[0].log_rate == Approx(23.125));
  CHECK_FALSE(state.slices[1].bytes_known);
  CHECK_FALSE(state.past[0].cause);
  CHECK(state.baselines[0].slices.size() == 2);
}

TEST_CASE("two thousand slices are a small text") {
  KeptDeploys kept = sample();
  kept.state.slices.assign(kDeploySlicesMax, kept.state.slices[0]);
  CHECK(deploy_state_text({kept}).size() < 100'000);
}

TEST_CASE("a missing file is none, a broken one a fresh start") {
  const TemporaryFolder folder;
  CHECK(load_deploys(folder.path()).empty());
  for (const char* text : {"", "{", "[]", "{\"version\":1}", "{\"version\":2,\"targets\":[]}", "\xff\xfe"}) {
    std::ofstream(deploy_state_path(folder.path())) << text;
    INFO(text);
    CHECK(load_deploys(folder.path()).empty());
    CHECK_FALSE(parse_deploy_state(text));
  }
}

TEST_CASE("a target that is broken costs itself") {
  using Json = nlohmann::json;
  const std::pair<const char*, Json> breaks[] = {
      {"/current/generation", 0},
      {"/current/generation", -1},
      {"/current/cause", "earthquake"},
      {"/current/began_ns", "soon"},
      {"/current/began_ns", -5},
      {"/current/change/rate/low", 2.0},
      {"/current/identity", nullptr},
      {"/port", 70'000},
      {"/learned/prompts/characters_per_token", 0},
      {"/learned/answers/texts", -1},
      {"/learned/error_of_text", "small"},
      {"/port", 0},
      {"/model", 5},
      {"/model", std::string(5000, 'x')},
      {"/slices", "1,2,3"},
      {"/slices", "1,2,3,4,x;"},
      {"/slices", "-1,2,3,4,5;"},
      {"/slices", "1,2,3,4,99999999999;"},
      {"/slices", "1,2,3,4,5;6"},
      {"/past", 3},
      {"/baselines", Json::array({1})},
      {"/first_token_ns", 1.5},
  };
  const std::string good = deploy_state_text({sample(), sample()});
  for (const auto& [path, value] : breaks) {
    Json json = Json::parse(good);
    json["targets"][0][Json::json_pointer(path)] = value;
    INFO(path << " " << value.dump());
    const auto read = parse_deploy_state(json.dump());
    REQUIRE(read);
    CHECK(read->size() == 1);
  }
}

TEST_CASE("more than we write is refused before it is kept") {
  nlohmann::json json = nlohmann::json::parse(deploy_state_text({sample()}));
  std::string slices;
  for (std::size_t i = 0; i <= kDeploySlicesMax; ++i) slices += std::to_string(i) + ",1,1,1,1;";
  json["targets"][0]["slices"] = slices;
  CHECK(parse_deploy_state(json.dump())->empty());
  const nlohmann::json one = nlohmann::json::parse(deploy_state_text({sample()}))["targets"][0];
  for (int i = 0; i < 100; ++i) json["targets"][static_cast<std::size_t>(i)] = one;
  CHECK(parse_deploy_state(json.dump())->size() == 64);
  CHECK_FALSE(parse_deploy_state(std::string(17 * 1024 * 1024, ' ')));
}

TEST_CASE("a file of an earlier build, without what was learned, loads") {
  auto json = nlohmann::json::parse(deploy_state_text({sample()}));
  json["targets"][0].erase("learned");
  const auto loaded = parse_deploy_state(json.dump());
  REQUIRE(loaded);
  REQUIRE(loaded->size() == 1);
  CHECK((*loaded)[0].learned.empty());
  CHECK((*loaded)[0].state.current.generation == 3);
}
