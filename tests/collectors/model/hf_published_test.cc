// Published models by their config.json: data/hf/published.csv has the right numbers, data/hf/configs the fields.
//
// parameters_total, active ones, KV bytes, and the parameters that a pass reads at batch 1, 8 and 64.

#include "collectors/model/hf_model.h"
#include "tests/support/catch.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::model;

namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<Row> published() {
  std::ifstream file(std::string(ROOFLINED_TEST_DATA) + "/hf/published.csv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = fields_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> values = fields_of(line);
    Row row;
    for (std::size_t at = 0; at < names.size() && at < values.size(); ++at) row[names[at]] = values[at];
    rows.push_back(std::move(row));
  }
  return rows;
}

ModelFile read(const std::string& name) {
  const std::string path = std::string(ROOFLINED_TEST_DATA) + "/hf/configs/" + name + ".json";
  Result<ModelFile> model = read_hf(path);
  INFO(name << ": " << (model ? std::string() : model.error().message()));
  REQUIRE(model.ok());
  return std::move(*model);
}

double kv_bytes_per_token(const ModelFile& model) {
  return make_geometry(model)->kv_bytes_per_token();
}

double parameters_read(const ModelFile& model, double batch) {
  double read = model.dense_parameters;
  for (const ExpertLayers& group : model.expert_layers) {
    const double all = static_cast<double>(group.experts);
    const double distinct = all * (1 - std::pow(1 - group.experts_per_token / all, batch));
    read += static_cast<double>(group.layers) * distinct * group.parameters_per_expert;
  }
  return read;
}

}  // namespace

TEST_CASE("published models have their published parameters, caches and reads") {
  std::size_t computed = 0;
  for (const Row& row : published()) {
    const std::string& name = row.at("model");
    INFO(name << " (" << row.at("check") << ")");
    const ModelFile model = read(name);
    if (!row.at("computed_text_total").empty()) {
      ++computed;
      REQUIRE(model.weights_known);
      CHECK(model.parameters_total == std::stod(row.at("computed_text_total")));
      CHECK(model.parameters_active == Approx(std::stod(row.at("computed_active_incl_embeddings"))).epsilon(1e-12));
    }
    if (!row.at("kv_bytes_per_token_bf16").empty()) {
      REQUIRE(model.kv_known);
      CHECK(kv_bytes_per_token(model) == std::stod(row.at("kv_bytes_per_token_bf16")));
    }
    for (const int batch : {1, 8, 64}) {
      const std::string& read = row.at("read_params_B" + std::to_string(batch));
      if (read.empty()) continue;
      INFO("batch " << batch);
      CHECK(std::abs(parameters_read(model, batch) - std::stod(read)) <= 1);
    }
    if (!row.at("tied").empty()) CHECK(model.tied_embeddings == (row.at("tied") == "yes"));
  }
  CHECK(computed == 53);
}

TEST_CASE("families beside the published ones have the parameter counts of their checkpoints") {
  std::ifstream file(std::string(ROOFLINED_TEST_DATA) + "/hf/families.jsonl");
  std::size_t models = 0;
  for (std::string line; std::getline(file, line); ++models) {
    const auto json = nlohmann::json::parse(line);
    INFO(json["model"]);
    const auto model = describe_config(json["config"].dump(), "config.json");
    REQUIRE(model.ok());
    CHECK(model->weights_known);
    CHECK(model->kv_known);
    if (json.contains("parameters_total")) {
      CHECK(model->parameters_total == json["parameters_total"].get<double>());
    } else {  // the publisher's rounded word
      CHECK(model->parameters_total == Approx(json["parameters_about"].get<double>()).epsilon(0.005));
    }
    if (json.contains("active_about")) {
      CHECK(model->parameters_active == Approx(json["active_about"].get<double>()).epsilon(0.04));
    }
    if (json.contains("kv_bytes_per_token")) {
      CHECK(kv_bytes_per_token(*model) == json["kv_bytes_per_token"].get<double>());
    }
  }
  CHECK(models > 120);
}

TEST_CASE("models stored in 16 bit read two bytes for each parameter; quantised and 32-bit ones their own") {
  const ModelFile llama = read("llama-3-8b");
  CHECK(make_geometry(llama)->weight_bytes(1).total() == 2.0 * 7504924672);
  CHECK(static_cast<double>(read("olmo2-32b").dense_bytes) == 4.0 * 31720477696);

  // FP8 in blocks of 128 × 128, a scale of 4 bytes each; norms, routers and the head in 16 bit.
  const ModelFile qwen = read("qwen3-30b-a3b-fp8");
  CHECK(qwen.expert_layers.at(0).bytes_per_expert == 3.0 * 2048 * 768 * (1 + 4.0 / (128 * 128)));
  CHECK(qwen.head_bytes == Bytes{2} * 151936 * 2048);

  // MXFP4: blocks of 32 with one byte of scale, the experts only, their biases in 16 bit.
  const ModelFile gpt = read("gpt-oss-20b");
  const double matrices = 3.0 * 2880 * 2880;
  const double biases = 3.0 * 2880;
  CHECK(gpt.expert_layers.at(0).bytes_per_expert == matrices * 17 / 32 + biases * 2);
}

TEST_CASE("mistakes that others made with a model's shape") {
  SECTION("the head's size is in the config, not the width over the heads") {
    CHECK(kv_bytes_per_token(read("qwen3-32b")) == 262144);
    CHECK(kv_bytes_per_token(read("qwen3-0.6b")) == 114688);
  }
  SECTION("layers with a window cache as well") {
    CHECK(kv_bytes_per_token(read("gpt-oss-120b")) == 73728);
  }
  SECTION("four layers see all of the context, twenty-two a window of 512") {
    CHECK(make_geometry(read("gemma-3-1b"))->kv_bytes(32768) == 145752064);
  }
  SECTION("two matrices in each feed-forward part") {
    CHECK(read("nemotron-h-8b").parameters_total == 8100852736);
  }
  SECTION("five quarters of the layers have no cache at all") {
    CHECK(kv_bytes_per_token(read("granite-4.0-h-small")) == 16384);
    CHECK(kv_bytes_per_token(read("minimax-m1-80k")) == 40960);
  }
  SECTION("a config that leaves out the layers: the class's defaults, by name, and never the vision tower's") {
    const ModelFile llava = read("llava-1.5-7b-hf");
    REQUIRE(llava.warnings.size() == 1);
    CHECK(llava.warnings[0].find("num_hidden_layers 32") != std::string::npos);
    CHECK(llava.kv_layers.at(0).layers == 32);
  }
  SECTION("names of other generations") {
    CHECK(kv_bytes_per_token(read("falcon-40b-legacy-rw")) == 122880);
    CHECK(kv_bytes_per_token(read("replit-code-v1_5-3b")) == 131072);
    CHECK(read("qwen-7b").parameters_total == 7721324544);
    CHECK(read("hunyuan-a13b").parameters_total == 80393183232);
  }
  SECTION("a table for each layer of which a token reads one row, and layers that share their cache") {
    const ModelFile gemma = read("gemma-3n-e4b");
    CHECK(gemma.dense_parameters == 4517886448);
    CHECK(kv_bytes_per_token(gemma) == 40960);
  }
  SECTION("a number of next-token layers in the config adds nothing") {
    CHECK(read("deepseek-v3").parameters_total == 671026419200);
  }
}

TEST_CASE("chunks, windows and top-k bound what is read, and not what is kept") {
  const Geometry scout = *make_geometry(read("llama-4-scout"));
  const double each = 2 * 8 * 128 * 2;
  CHECK(scout.kv_bytes(8192) == 48 * each * 8192);
  CHECK(scout.kv_bytes(8193) == each * (12 * 8193 + 36 * 1));
  const Geometry glm = *make_geometry(read("glm-5"));
  CHECK(glm.kv_bytes(10000) == 78 * (576 * 2.0 * 2048 + 128 * 2.0 * 10000));
  CHECK(glm.kv_bytes_per_token() == 78 * 576 * 2);
  const Geometry mamba = *make_geometry(read("mamba2-2.7b"));
  CHECK(mamba.kv_bytes_per_token() == 0);
  CHECK(mamba.kv_bytes(1) == mamba.kv_bytes(1000000));
  CHECK(mamba.state_bytes_per_sequence > 0);
}

TEST_CASE("what a config does not say is not guessed") {
  const auto described = [](const char* text) { return describe_config(text, "config.json"); };
  SECTION("encoders and encoder-decoders are named") {
    for (const char* type : {"t5", "bert", "whisper"}) {
      const auto model = described((std::string(R"({"model_type":")") + type + R"("})").c_str());
      REQUIRE(model.ok());
      CHECK_FALSE(model->weights_known);
      CHECK_FALSE(model->kv_known);
      REQUIRE(model->warnings.size() == 1);
      CHECK(model->warnings[0].find(type) != std::string::npos);
    }
  }
  SECTION("an unknown architecture with the common keys is read as one, and said so") {
    const auto model = described(
        R"({"model_type":"brandnew","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,
            "intermediate_size":128,"tie_word_embeddings":true,"torch_dtype":"bfloat16"})");
    REQUIRE(model.ok());
    CHECK(model->parameters_total == 100 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64));
    CHECK(model->warnings.at(0).find("brandnew") != std::string::npos);
  }
  SECTION("an unknown architecture with parts of its own is not") {
    const auto model = described(R"({"model_type":"brandnew","hidden_size":64,"mamba_d_state":16})");
    REQUIRE(model.ok());
    CHECK_FALSE(model->weights_known);
  }
  SECTION("missing and impossible numbers") {
    for (
        const char* text :
        {R"({"model_type":"qwen3","hidden_size":64})", R"({"model_type":"qwen3","hidden_size":-1})",
         R"({"model_type":"qwen3","hidden_size":64,"num_hidden_layers":1e12,"num_attention_heads":4,"vocab_size":9})"}) {
      const auto model = described(text);
      REQUIRE(model.ok());
      CHECK_FALSE(model->weights_known);
      CHECK(model->warnings.at(0).find("config.json does not say") != std::string::npos);
    }
  }
  SECTION("not an object, not JSON, nested without end") {
    CHECK_FALSE(described("[]").ok());
    CHECK_FALSE(described("{").ok());
    CHECK_FALSE(described(std::string(100'000, '[').c_str()).ok());
  }
  SECTION("Python's words for numbers that JSON does not have") {
    CHECK(described(R"({"model_type":"llama","a":[Infinity,-Infinity,NaN],"b":"Infinity \" NaN"})").ok());
  }
}
