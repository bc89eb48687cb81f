// Whatever a model file declares, reading it takes less than 64 MB: the largest that the limits let through.
//
// Links allocation_watch.cc.

#include "collectors/model/gguf_model.h"
#include "collectors/model/hf_model.h"
#include "collectors/model/hf_weights.h"
#include "collectors/model/ollama_show.h"
#include "collectors/model/safetensors_header.h"
#include "tests/support/allocation_watch.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_writer.h"

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::GgufWriter;

namespace {

constexpr std::ptrdiff_t kBytesMax = 64'000'000;

std::ptrdiff_t peak_of(const std::function<void()>& work) {
  test::watch_allocations();
  work();
  return test::allocations().peak;
}

}  // namespace

TEST_CASE("a GGUF file with as many tensors and keys as are read, all of their names long") {
  GgufWriter file;
  file.text("general.architecture", "llama").u32("llama.expert_used_count", 2).u32("llama.block_count", 4096);
  for (int key = 0; key < 4000; ++key) file.text(fmt::format("{:0>250}", key), std::string(250, 'v'));
  for (int tensor = 0; tensor < 100'000; ++tensor) {
    file.tensor(fmt::format("blk.{}.ffn_gate.{:0>100}.weight", tensor % 4096, tensor), {1}, "F32");
  }
  const std::string bytes = file.header();
  bool read = false;
  const std::ptrdiff_t peak = peak_of([&] {
    MemorySource source(std::as_bytes(std::span(bytes)));
    Result<GgufHeader> header = read_gguf_header(source, "m");
    read = header.ok();
    if (!read) return;
    const GgufShard shard{std::move(*header), bytes.size()};
    read = describe_gguf(std::span<const GgufShard>(&shard, 1), "m-Q4_0.gguf").weights_known;
  });
  CHECK_FALSE(read);  // no output head: but all of it was walked
  CHECK(peak < kBytesMax);
}

TEST_CASE("a safetensors header with as many tensors as are read, experts in every layer") {
  constexpr std::size_t kTensors = 399'999;
  std::string bytes(8, '\0');
  bytes += '{';
  for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
    bytes += fmt::format(R"({}"layers.{}.experts.{}.w":{{"dtype":"I8","shape":[0],"data_offsets":[0,0]}})",
                         tensor == 0 ? "" : ",", tensor % 4096, tensor);
  }
  bytes += '}';
  for (unsigned byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<char>(((bytes.size() - 8) >> (8 * byte)) & 0xFFU);
  std::uint64_t tensors = 0;
  const std::ptrdiff_t peak = peak_of([&] {
    MemorySource source(std::as_bytes(std::span(bytes)));
    CheckpointWeights weights(nullptr, 0);
    const auto summary =
        read_safetensors_header(source, "m", [&](const SafetensorsTensor& tensor) { weights.add(tensor); });
    REQUIRE(summary.ok());
    tensors = summary->tensors;
    ModelFile model;
    weights.finish(model);
  });
  CHECK(tensors == kTensors);
  CHECK(peak < kBytesMax);
}

TEST_CASE("a config.json of two megabytes") {
  const auto filled = [](std::string head, const std::string& item, std::string_view tail) {
    while (head.size() + item.size() + tail.size() < kConfigBytesMax - 1) head += item;
    head.back() = ' ';  // the last comma
    return head + std::string(tail);
  };
  const std::string shape =
      R"("model_type":"llama","hidden_size":64,"num_hidden_layers":64,"num_attention_heads":4,"vocab_size":9,)";
  for (const std::string& text : {
           filled("{" + shape + R"("a":[)", "[],", "]}"),
           filled("{" + shape + R"("quantization_config":{"quant_method":"fp8","ignore":[)",
                  R"x("re:(a|b|c|d)(e|f|g|h)",)x", "]}}"),
           filled("{" + shape + R"("layer_types":[)", R"("full",)", "]}"),
           filled(R"({"model_info":{"a":1},"tensors":[)", R"({"name":"blk.0.w","type":"F32","shape":[1]},)", "]}"),
       }) {
    INFO(text.substr(0, 150));
    CHECK(peak_of([&] {
            const auto model = describe_config(text, "m");
            const auto told = describe_ollama_show(text);
            static_cast<void>(model.ok() || told.ok());
          }) < kBytesMax);
  }
}
