// rooflined-make-model FILE: writes a GGUF model of random weights that llama.cpp loads and serves: architecture llama,
// dense or mixture of experts, with a byte-level SentencePiece vocabulary. Its text is noise; its speed is a model's.

#include "tests/support/gguf_writer.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

namespace {

struct Shape {
  std::uint32_t layers = 8;
  std::uint32_t width = 768;
  std::uint32_t heads = 12;
  std::uint32_t kv_heads = 4;
  std::uint32_t ffn = 2048;
  std::uint32_t vocabulary = 8192;
  std::uint32_t context = 8192;
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 2;
  std::uint64_t seed = 1;
  std::string type = "q8_0";
};

using rooflined::test::GgufWriter;

void add_vocabulary(GgufWriter& file, std::uint32_t size) {
  // Token types of llama.cpp's vocabulary (llama.h, llama_token_type).
  enum : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };
  constexpr std::uint32_t kBytesFrom = 3;
  constexpr std::uint32_t kWordsFrom = kBytesFrom + 256;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {kUnknown, kControl, kControl};
  std::vector<float> scores(size, 0.0F);
  for (unsigned byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(kByte);
  }
  // "▁" opens a word in SentencePiece; the words are numbers to base 26.
  for (std::uint32_t i = kWordsFrom; i < size; ++i) {
    std::string word = i % 2 == 0 ? "\xE2\x96\x81" : "";
    for (std::uint32_t rest = i; rest > 0; rest /= 26) word.push_back(static_cast<char>('a' + rest % 26));
    tokens.push_back(word);
    types.push_back(kNormal);
    scores[i] = -static_cast<float>(i - kWordsFrom);
  }
  file.text("tokenizer.ggml.model", "llama").text("tokenizer.ggml.pre", "default");
  file.texts("tokenizer.ggml.tokens", tokens).f32s("tokenizer.ggml.scores", scores);
  file.i32s("tokenizer.ggml.token_type", types);
  file.u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.unknown_token_id", 0);
  file.flag("tokenizer.ggml.add_bos_token", true).flag("tokenizer.ggml.add_eos_token", false);
  file.text("tokenizer.chat_template",
            "{%- for message in messages -%}{{ message.role + ': ' + message.content + '\\n' }}{%- endfor -%}"
            "{%- if add_generation_prompt -%}{{ 'assistant: ' }}{%- endif -%}");
}

void add_tensors(GgufWriter& file, const Shape& shape) {
  const std::uint64_t width = shape.width;
  const std::uint64_t kv_width = width / shape.heads * shape.kv_heads;
  file.tensor("token_embd.weight", {width, shape.vocabulary}, shape.type);
  file.tensor("output_norm.weight", {width}, "F32");
  file.tensor("output.weight", {width, shape.vocabulary}, shape.type);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}.weight", layer, part); };
    file.tensor(name("attn_norm"), {width}, "F32");
    file.tensor(name("ffn_norm"), {width}, "F32");
    file.tensor(name("attn_q"), {width, width}, shape.type);
    file.tensor(name("attn_k"), {width, kv_width}, shape.type);
    file.tensor(name("attn_v"), {width, kv_width}, shape.type);
    file.tensor(name("attn_output"), {width, width}, shape.type);
    if (shape.experts == 0) {
      file.tensor(name("ffn_gate"), {width, shape.ffn}, shape.type);
      file.tensor(name("ffn_up"), {width, shape.ffn}, shape.type);
      file.tensor(name("ffn_down"), {shape.ffn, width}, shape.type);
    } else {
      file.tensor(name("ffn_gate_inp"), {width, shape.experts}, "F32");
      file.tensor(name("ffn_gate_exps"), {width, shape.ffn, shape.experts}, shape.type);
      file.tensor(name("ffn_up_exps"), {width, shape.ffn, shape.experts}, shape.type);
      file.tensor(name("ffn_down_exps"), {shape.ffn, width, shape.experts}, shape.type);
    }
  }
}

GgufWriter describe(const Shape& shape) {
  GgufWriter file;
  file.text("general.architecture", "llama").text("general.name", "random weights");
  file.u32("llama.context_length", shape.context).u32("llama.embedding_length", shape.width);
  file.u32("llama.block_count", shape.layers).u32("llama.feed_forward_length", shape.ffn);
  file.u32("llama.attention.head_count", shape.heads).u32("llama.attention.head_count_kv", shape.kv_heads);
  file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  file.u32("llama.rope.dimension_count", shape.width / shape.heads).u32("llama.vocab_size", shape.vocabulary);
  if (shape.experts > 0) {
    file.u32("llama.expert_count", shape.experts).u32("llama.expert_used_count", shape.experts_used);
  }
  add_vocabulary(file, shape.vocabulary);
  add_tensors(file, shape);
  return file;
}

// Half-precision numbers of about 1/sqrt(width), random signs and mantissas; exact values do not matter.
class Noise {
 public:
  explicit Noise(const Shape& shape) : shape_(shape), random_(shape.seed) {
    exponent_ = static_cast<std::uint32_t>(15 - std::ceil(std::log2(std::sqrt(static_cast<double>(shape.width)))));
  }

  void fill(std::ostream& out, std::string_view tensor, std::uint64_t bytes) {
    std::string data;
    data.reserve(bytes);
    const bool norm = tensor.ends_with("_norm.weight");
    const bool router = tensor.find("ffn_gate_inp") != std::string_view::npos;
    while (data.size() < bytes) {
      if (norm) {
        put_float(data, 1.0F);
      } else if (router) {
        put_float(data, static_cast<float>(random_() % 2001) / 1000.0F - 1.0F);
      } else if (shape_.type == "f16") {
        put_half(data, exponent_);
      } else {
        put_block(data);
      }
    }
    out.write(data.data(), static_cast<std::streamsize>(bytes));
  }

 private:
  static void put_float(std::string& data, float value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    data.append(bytes, sizeof(bytes));
  }
  void put_half(std::string& data, std::uint32_t exponent) {
    const std::uint64_t bits = random_();
    const std::uint32_t half = static_cast<std::uint32_t>(bits & 0x83FF) | exponent << 10;
    data.push_back(static_cast<char>(half & 0xFF));
    data.push_back(static_cast<char>(half >> 8));
  }
  // A scale, then 32 quants of 8 or of 4 bits.
  void put_block(std::string& data) {
    const bool wide = shape_.type == "q8_0";
    const std::uint32_t exponent = exponent_ - (wide ? 6U : 2U);
    data.push_back(static_cast<char>(0));
    data.push_back(static_cast<char>(exponent << 2));
    for (int i = 0; i < (wide ? 4 : 2); ++i) {
      const std::uint64_t bits = random_();
      char bytes[sizeof(bits)];
      std::memcpy(bytes, &bits, sizeof(bits));
      data.append(bytes, sizeof(bytes));
    }
  }

  const Shape& shape_;
  std::mt19937_64 random_;
  std::uint32_t exponent_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Shape shape;
    std::string path;
    CLI::App app("Writes a GGUF model of random weights.", "rooflined-make-model");
    app.option_defaults()->always_capture_default();
    app.add_option("FILE", path, "file to write")->required();
    app.add_option("--layers", shape.layers, "repeating layers");
    app.add_option("--width", shape.width, "embedding length");
    app.add_option("--heads", shape.heads, "query heads");
    app.add_option("--kv-heads", shape.kv_heads, "key-value heads");
    app.add_option("--ffn", shape.ffn, "feed-forward length, of one expert where there are experts");
    app.add_option("--vocab", shape.vocabulary, "vocabulary, at least 260")->check(CLI::Range(260U, 1'000'000U));
    app.add_option("--context", shape.context, "context length");
    app.add_option("--experts", shape.experts, "routed experts in a layer; 0: dense");
    app.add_option("--experts-used", shape.experts_used, "experts per token");
    app.add_option("--seed", shape.seed, "seed of the weights");
    app.add_option("--type", shape.type, "type of the matrices")->check(CLI::IsMember({"q8_0", "q4_0", "f16"}));
    CLI11_PARSE(app, argc, argv);
    if (shape.heads == 0 || shape.kv_heads == 0 || shape.width % (shape.heads * 2) != 0 || shape.width % 32 != 0 ||
        shape.ffn % 32 != 0 || shape.heads % shape.kv_heads != 0) {
      std::fprintf(stderr, "width must divide by 32 and by twice the heads, ffn by 32, heads by kv-heads\n");
      return 2;
    }
    Noise noise(shape);
    describe(shape).write(
        path, [&](std::ostream& out, std::string_view tensor, std::uint64_t bytes) { noise.fill(out, tensor, bytes); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rooflined-make-model: %s\n", error.what());
    return 1;
  }
  return 0;
}
