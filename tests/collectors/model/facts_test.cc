// The numbers of the documents that the product was made from (data/facts), to 1e-9: expected experts, weight bytes of
// a pass, MBU, cache bytes, shapes. Their convention: the head counts two bytes a parameter, and the embedding's row
// none.

#include "collectors/model/catalogue.h"
#include "collectors/model/hf_model.h"
#include "tests/support/catch.h"
#include "tests/support/fact_rows.h"

#include <map>
#include <sstream>
#include <string>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::number;
using Row = rooflined::test::FactRow;

namespace {

ModelFile model_of(const std::string& name) {
  const std::map<std::string, std::string> files = {{"Llama-3-8B", "llama-3-8b"},
                                                    {"Mixtral-8x7B", "mixtral-8x7b"},
                                                    {"Qwen3-30B-A3B", "qwen3-30b-a3b"},
                                                    {"Qwen2.5-1.5B", "qwen2.5-1.5b"},
                                                    {"DeepSeek-V3", "deepseek-v3"}};
  if (name == "Qwen2.5-0.5B") {
    return *describe_config(
        R"({"model_type":"qwen2","hidden_size":896,"intermediate_size":4864,"num_hidden_layers":24,"vocab_size":151936,
            "num_attention_heads":14,"num_key_value_heads":2,"tie_word_embeddings":true,"torch_dtype":"bfloat16"})",
        name);
  }
  return *read_hf(std::string(ROOFLINED_TEST_DATA) + "/hf/configs/" + files.at(name) + ".json");
}

// As the documents count: no norms of a router's scores (DeepSeek's expert biases are theirs too).
Geometry geometry_of(const std::string& name, double weight_bytes, double kv_bytes) {
  ModelFile model = model_of(name);
  convert_weights(model, 8 * weight_bytes);
  Geometry geometry = *make_geometry(model);
  for (KvGroup& group : geometry.kv_groups) group.bytes_per_token *= kv_bytes / 2;
  return geometry;
}

}  // namespace

TEST_CASE("expected distinct experts") {
  for (const Row& row : test::fact_rows(ROOFLINED_TEST_DATA, "moe_unique_experts")) {
    INFO(row.at("model") << " " << row.at("B"));
    Geometry geometry;
    geometry.expert_groups = {
        ExpertGroup{1, static_cast<std::uint64_t>(number(row, "experts")), number(row, "top_k"), 1}};
    CHECK(geometry.weight_bytes(number(row, "B")).experts == Approx(number(row, "expected_unique")).epsilon(1e-9));
  }
}

TEST_CASE("weight bytes of a pass") {
  for (const Row& row : test::fact_rows(ROOFLINED_TEST_DATA, "weight_bytes_per_step")) {
    INFO(row.at("model") << " " << row.at("weight_dtype") << " " << row.at("B"));
    const Geometry geometry = geometry_of(row.at("model"), row.at("weight_dtype") == "fp8" ? 1 : 2, 2);
    CHECK(geometry.weight_bytes(number(row, "B")).total() ==
          Approx(number(row, "weight_bytes_per_step")).epsilon(1e-9));
  }
}

TEST_CASE("MBU of an engine that is never idle") {
  for (const Row& row : test::fact_rows(ROOFLINED_TEST_DATA, "mbu_vectors")) {
    INFO(row.at("model") << " at " << row.at("T_tok_s"));
    const Geometry geometry =
        geometry_of(row.at("model"), number(row, "weight_bytes_per_param"), number(row, "kv_bytes_per_elem"));
    const double tokens = number(row, "T_tok_s");
    const double passes = number(row, "R") / number(row, "tau_s");
    const double batch = tokens / passes;
    CHECK(batch == Approx(number(row, "B")).epsilon(1e-12));
    const double bytes =
        passes * geometry.weight_bytes(batch).total() + tokens * geometry.kv_bytes(number(row, "mean_ctx"));
    const double bandwidth = number(row, "n_gpu") * number(row, "peak_bytes_s_per_gpu");
    CHECK(bytes / bandwidth == Approx(number(row, "MBU")).epsilon(1e-9));
  }
}

TEST_CASE("cache bytes at a depth, and what they take off the speed by bytes alone") {
  for (const Row& row : test::fact_rows(ROOFLINED_TEST_DATA, "long_context")) {
    INFO(row.at("model") << " " << row.at("depth"));
    const Geometry geometry = geometry_of(row.at("model").substr(0, row.at("model").find(' ')), 2, 2);
    CHECK(geometry.kv_bytes_per_token() == number(row, "kv_bytes_per_token_f16"));
    const double cache = geometry.kv_bytes(number(row, "depth"));
    CHECK(cache == number(row, "computed_kv_bytes"));
    const double weights = number(row, "weight_bytes");
    CHECK(100 * weights / (weights + cache) == Approx(number(row, "computed_predicted_pct")).margin(0.0006));
  }
}

// "L:n;…": n tokens were made behind a prompt of L. The documents' mean context counts the first token, whose context
// prefill reads; the cache bytes of a request are a sum over the same contexts, in constant time.
TEST_CASE("mean context of requests") {
  for (const Row& row : test::fact_rows(ROOFLINED_TEST_DATA, "mean_context_vectors")) {
    INFO(row.at("requests_L_colon_n"));
    Geometry geometry;
    geometry.kv_groups = {KvGroup{1, 1}};
    double sum = 0;
    double tokens = 0;
    std::istringstream requests(row.at("requests_L_colon_n"));
    for (std::string request; std::getline(requests, request, ';');) {
      const std::size_t colon = request.find(':');
      const double made = std::stod(request.substr(colon + 1));
      sum += geometry.kv_bytes_sum(std::stod(request.substr(0, colon)), made);
      tokens += made;
    }
    CHECK(sum == Approx(number(row, "sum_context")).epsilon(1e-9));
    CHECK(tokens == number(row, "total_output_tokens"));
    CHECK(sum / tokens == Approx(number(row, "mean_ctx")).epsilon(1e-9));
  }
}

TEST_CASE("shapes") {
  for (const Row& row : test::fact_rows(ROOFLINED_TEST_DATA, "model_geometry")) {
    INFO(row.at("model"));
    const ModelFile model = model_of(row.at("model"));
    CHECK(model.parameters_total == number(row, "total_params"));
    CHECK(model.parameters_active == Approx(number(row, "active_params_per_token")).epsilon(1e-12));
    CHECK(model.head_parameters == number(row, "lm_head_params"));
    CHECK(model.dense_parameters - model.head_parameters == number(row, "dense_params_excl_embed_head_experts"));
    CHECK(make_geometry(model)->kv_bytes_per_token() == number(row, "kv_bytes_per_token_bf16"));
    if (number(row, "moe_layers") == 0) continue;
    CHECK(static_cast<double>(model.expert_layers.at(0).layers) == number(row, "moe_layers"));
    CHECK(model.expert_layers.at(0).parameters_per_expert == number(row, "params_per_expert"));
  }
}

TEST_CASE("published models by the names that servers give") {
  for (const char* name : {"Qwen/Qwen3-8B", "qwen3-8b", "unsloth/Qwen3-8B-Instruct", "Qwen/Qwen3-8B-Base"}) {
    INFO(name);
    const auto model = catalogue_model(name);
    REQUIRE(model.has_value());
    CHECK(model->parameters_total == 8190735360);
  }
  CHECK(catalogue_model("deepseek-ai/DeepSeek-R1")->parameters_total == 671026419200);
  CHECK(catalogue_model("openai/gpt-oss-20b")->parameters_total == 20914757184);
  for (const char* name : {"", "Qwen/Qwen3-8B-AWQ", "8b", "qwen", "-instruct", "Qwen/Qwen3-8"}) {
    INFO(name);
    CHECK_FALSE(catalogue_model(name).has_value());
  }
}
