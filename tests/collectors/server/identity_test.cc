// Answers of real servers (data/, recorded), of other families (by their documentation), and broken ones.

#include "collectors/server/identity.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::server;

namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(std::string(ROOFLINED_TEST_DATA) + "/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("llama.cpp of 2026") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(recorded("b11669.models.json"), identity).ok());
  REQUIRE(add_props_answer(recorded("b11669.props.json"), identity).ok());
  CHECK(identity.family == ServerFamily::kLlamaCpp);
  CHECK(identity.version == "b11669-Debian");
  CHECK(identity.model_path == "/lab/dense-q8.gguf");
  CHECK(identity.model_label() == "dense-q8.gguf");
  CHECK(identity.context_per_slot == 1024U);
  CHECK(identity.slots == 4U);
  CHECK(identity.speculative == false);
  REQUIRE(identity.base_model() != nullptr);
  CHECK(identity.base_model()->parameters == 852'559'872U);
  CHECK(identity.base_model()->tensor_bytes == 906'043'392U);
}

TEST_CASE("llama.cpp of early 2025") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(recorded("dense-q8.models.json"), identity).ok());
  REQUIRE(add_props_answer(recorded("dense-q8.props.json"), identity).ok());
  CHECK(identity.family == ServerFamily::kLlamaCpp);
  CHECK(identity.version == "b4748-c392e5094");
  CHECK(identity.model_path == "dense-q8.gguf");
  CHECK(identity.model_label() == "dense-q8.gguf");
  CHECK(identity.slots == 4U);
  CHECK(identity.speculative == false);
}

TEST_CASE("props alone are enough to know llama.cpp") {
  ServerIdentity identity;
  REQUIRE(add_props_answer(recorded("b11669.props.json"), identity).ok());
  CHECK(identity.family == ServerFamily::kLlamaCpp);
}

TEST_CASE("a build that speculates says so") {
  ServerIdentity identity;
  REQUIRE(add_props_answer(
              R"({"model_path":"m","default_generation_settings":{"params":{"speculative.types":"draft"}}})", identity)
              .ok());
  CHECK(identity.speculative == true);
}

TEST_CASE("llama.cpp's router has an engine for each model, and a path of none") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(recorded("b11669-router.models.json"), identity).ok());
  REQUIRE(add_props_answer(recorded("b11669-router.props.json"), identity).ok());
  CHECK(identity.family == ServerFamily::kLlamaCpp);
  CHECK(identity.version == "b11669-Debian");
  CHECK(identity.several_engines());
  CHECK(identity.model_path.empty());
  CHECK(identity.model_label().empty());
  CHECK(identity.model_label("two") == "two");
  // The same port later: a server of one model.
  REQUIRE(add_props_answer(recorded("b11669.props.json"), identity).ok());
  CHECK_FALSE(identity.several_engines());
  CHECK(identity.model_path == "/lab/dense-q8.gguf");
}

TEST_CASE("vLLM: weights from root, adapters map to their base") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(R"({"object":"list","data":[
    {"id":"Qwen/Qwen2.5-7B","owned_by":"vllm","root":"/hub/qwen","parent":null,"max_model_len":4096},
    {"id":"sql-lora","owned_by":"vllm","root":"/lora","parent":"Qwen/Qwen2.5-7B"}]})",
                            identity)
              .ok());
  REQUIRE(add_version_answer(R"({"version":"0.11.0"})", identity).ok());
  CHECK(identity.family == ServerFamily::kVllm);
  CHECK(identity.version == "0.11.0");
  CHECK(identity.model_path == "/hub/qwen");
  CHECK(identity.model_label() == "Qwen2.5-7B");
  CHECK(identity.model_label("sql-lora") == "Qwen2.5-7B");
  CHECK(identity.model_label("Qwen/Qwen2.5-7B") == "Qwen2.5-7B");
  CHECK(identity.model_label("gpt-4").empty());
}

TEST_CASE("several base models: none of them is the model") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(R"({"data":[{"id":"llama3:8b","owned_by":"library"},{"id":"qwen:7b","owned_by":"me"}]})",
                            identity)
              .ok());
  CHECK(identity.family == ServerFamily::kOllama);
  CHECK(identity.base_model() == nullptr);
  CHECK(identity.model_label().empty());
  CHECK(identity.model_label("qwen:7b") == "qwen:7b");
}

TEST_CASE("owners") {
  CHECK(family_of_owner("llamacpp") == ServerFamily::kLlamaCpp);
  CHECK(family_of_owner("sglang") == ServerFamily::kSglang);
  CHECK(family_of_owner("lmdeploy") == ServerFamily::kLmDeploy);
  CHECK(family_of_owner("MLC-LLM") == ServerFamily::kMlc);
  CHECK(family_of_owner("aphrodite") == ServerFamily::kAphrodite);
  CHECK(family_of_owner("koboldcpp") == ServerFamily::kKoboldCpp);
  CHECK(family_of_owner("somebody") == ServerFamily::kUnknown);
}

TEST_CASE("TGI and SGLang name their model") {
  ServerIdentity identity;
  REQUIRE(add_model_answer(R"({"model_id":"org/m","version":"3.0.1","sha":"x"})", identity).ok());
  CHECK(identity.model_path == "org/m");
  CHECK(identity.version == "3.0.1");
  REQUIRE(add_model_answer(R"({"model_path":"/models/x","is_generation":true})", identity).ok());
  CHECK(identity.model_path == "/models/x");
}

TEST_CASE("labels are clean, whatever the server calls its model") {
  ServerIdentity identity;
  REQUIRE(add_models_answer("{\"data\":[{\"id\":\"/a/b\\u0001c/\",\"owned_by\":\"llamacpp\"}]}", identity).ok());
  CHECK(identity.model_label() == "b c");
}

TEST_CASE("broken answers change nothing") {
  const std::string deep = std::string(100'000, '[');
  for (const std::string& body :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{"), std::string("null"),
        std::string("{}"), std::string(R"({"data":{}})"), deep, std::string("{\"data\":\"\xff\xfe\"}")}) {
    ServerIdentity identity;
    identity.version = "before";
    CHECK_FALSE(add_models_answer(body, identity).ok());
    CHECK_FALSE(add_props_answer(body, identity).ok());
    static_cast<void>(add_version_answer(body, identity));
    static_cast<void>(add_model_answer(body, identity));
    CHECK(identity.family == ServerFamily::kUnknown);
    CHECK(identity.version == "before");
    CHECK(identity.models.empty());
  }
}

TEST_CASE("members of the wrong type are as if they were not there") {
  ServerIdentity identity;
  REQUIRE(
      add_models_answer(R"({"data":[1,null,"x",{"id":7},{"id":"m","aliases":"no","meta":[],"owned_by":3}]})", identity)
          .ok());
  REQUIRE(identity.models.size() == 1);
  REQUIRE(add_props_answer(R"({"model_path":"m","total_slots":-1,"build_info":{},
                               "default_generation_settings":{"n_ctx":"4096","speculative":"yes","params":3}})",
                           identity)
              .ok());
  CHECK_FALSE(identity.slots.has_value());
  CHECK_FALSE(identity.context_per_slot.has_value());
  CHECK_FALSE(identity.speculative.has_value());
  CHECK(identity.version.empty());
}

TEST_CASE("a list without end is cut") {
  std::string body = R"({"data":[)";
  for (int i = 0; i < 5000; ++i) body += R"({"id":"m)" + std::to_string(i) + R"("},)";
  body += R"({"id":"last"}]})";
  ServerIdentity identity;
  REQUIRE(add_models_answer(body, identity).ok());
  CHECK(identity.models.size() == 256);
}

TEST_CASE("the KV cache's type, where a server tells it") {
  ServerIdentity identity;
  REQUIRE(
      add_props_answer(
          R"({"model_path":"m","default_generation_settings":{"cache_type_k":"q8_0","cache_type_v":"q4_0"}})", identity)
          .ok());
  CHECK(identity.kv_cache_type == "q8_0,q4_0");

  identity = {};
  CHECK(add_arguments_answer(R"({"kv_cache_dtype":"fp8_e5m2","tp_size":1})", identity).ok());
  CHECK(identity.kv_cache_type == "fp8_e5m2");
  identity = {};
  CHECK(add_arguments_answer(R"({"kv_cache_dtype":"auto"})", identity).ok());
  CHECK(identity.kv_cache_type.empty());
  CHECK_FALSE(add_arguments_answer("[]", identity).ok());
}

TEST_CASE("vLLM's metrics tell the cache's type and nothing else is taken from them") {
  struct Row {
    const char* text;
    bool known;
    const char* type;
  };
  for (const Row& row : {
           Row{"# TYPE vllm:cache_config_info gauge\n"
               "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"fp8\",engine=\"0\"} 1.0\n",
               true, "fp8"},
           Row{"#\nvllm:cache_config_info{cache_dtype=\"auto\"} 1.0\n", true, ""},
           Row{"#\nvllm:cache_config_info{mamba_cache_dtype=\"float32\",cache_dtype=\"fp8_e4m3\"} 1.0", true,
               "fp8_e4m3"},
           Row{"#\nvllm:cache_config_info{mamba_cache_dtype=\"float32\"} 1.0\n", false, ""},
           Row{"#\nvllm:cache_config_info{cache_dtype=\"", true, ""},
           Row{"#\nvllm:num_requests_running{cache_dtype=\"fp8\"} 1.0\n", false, ""},
           Row{"", false, ""},
       }) {
    INFO(row.text);
    ServerIdentity identity;
    CHECK(add_metrics_answer(row.text, identity).ok() == row.known);
    CHECK(identity.kv_cache_type == row.type);
  }
}

TEST_CASE("Ollama: the models that streams come from are those that are loaded, or the one there is") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(R"({"data":[{"id":"a:latest","owned_by":"library"},{"id":"b:latest"}]})", identity).ok());
  CHECK(identity.running_models().empty());
  REQUIRE(add_running_answer(R"({"models":[{"name":"b:latest","model":"b:latest","size":1,"size_vram":0}]})", identity)
              .ok());
  CHECK(identity.running_models() == std::vector<std::string>{"b:latest"});
  REQUIRE(add_running_answer(R"({"models":[{"name":"a:latest"},{"name":"b:latest"}]})", identity).ok());
  CHECK(identity.running_models() == std::vector<std::string>{"a:latest", "b:latest"});
  REQUIRE(add_models_answer(R"({"data":[{"id":"a:latest","owned_by":"library"}]})", identity).ok());
  REQUIRE(add_running_answer(R"({"models":[]})", identity).ok());
  CHECK(identity.running_models() == std::vector<std::string>{"a:latest"});
  CHECK_FALSE(add_running_answer(R"({"models":5})", identity).ok());
  CHECK_FALSE(add_running_answer("x", identity).ok());
}

TEST_CASE("what the models of a list may be asked for by, and are called") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(R"({"data":[{"id":"hub/a/m:q4"},{"id":"hub/b/m:q4"},{"id":"org/x:latest","aliases":["y"]},
                                        {"id":"sql","parent":"org/x:latest"}]})",
                            identity)
              .ok());
  const std::vector<ListedModel> listed = listed_models(identity);
  REQUIRE(listed.size() == 3);
  CHECK(listed[0].label == "hub/a/m:q4");  // two that end alike
  CHECK(listed[0].names == std::vector<std::uint64_t>{model_name_hash("hub/a/m:q4")});
  CHECK(listed[1].label == "hub/b/m:q4");
  CHECK(listed[2].label == "x:latest");
  for (const char* name : {"org/x", "x", "x:latest", "y", "sql"}) {
    INFO(name);
    CHECK(std::count(listed[2].names.begin(), listed[2].names.end(), model_name_hash(name)) >= 1);
  }
}

TEST_CASE("a router tells which file a model is loaded from, and nothing of those that are not") {
  ServerIdentity identity;
  REQUIRE(add_models_answer(recorded("b11669-router.models.json"), identity).ok());
  REQUIRE(identity.models.size() == 2);
  CHECK(identity.models[0].root == "/models/router/one.gguf");
  CHECK(identity.models[0].tensor_bytes == 66'898'944U);
  REQUIRE(add_models_answer(R"({"data":[{"id":"m","status":{"value":"unloaded","args":["--model","/m.gguf"]}},
                                        {"id":"n","status":{"value":"loaded","args":["--model"]}},
                                        {"id":"o","status":{"value":"loaded","args":[3,{},"-m","/o.gguf"]}},
                                        {"id":"p","status":"loaded"}]})",
                            identity)
              .ok());
  REQUIRE(identity.models.size() == 4);
  CHECK(identity.models[0].root.empty());
  CHECK(identity.models[1].root.empty());
  CHECK(identity.models[2].root == "/o.gguf");
  CHECK(identity.models[3].root.empty());
}
