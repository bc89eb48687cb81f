#include "collectors/model/hf_families.h"

#include <array>
#include <string>

namespace rooflined::model {
namespace {

constexpr Switch kYes = {"", true};
constexpr Switch kNo = {"", false};
constexpr NormKind kLayer = NormKind::kLayer;
constexpr QkNorm kPerHead = QkNorm::kPerHead;
constexpr QkNorm kWidth = QkNorm::kWidth;
constexpr QkNorm kEachHead = QkNorm::kEachHead;

constexpr std::string_view kLlamaDefaults =
    R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32})";
constexpr std::string_view kMistralDefaults =
    R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,
        "num_key_value_heads":8})";
constexpr std::string_view kGemma3Defaults =
    R"({"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,"num_attention_heads":8,
        "num_key_value_heads":4,"head_dim":256,"sliding_window":4096,"sliding_window_pattern":6})";
constexpr std::string_view kGemmaDefaults =
    R"({"vocab_size":256000,"head_dim":256,"num_attention_heads":8,"num_key_value_heads":4})";

// `type` holds every model_type of the family, with a space after each.
constexpr std::array kFamilies = {
    // Llama and what has its shape. The bias of attention_bias is on all four projections there.
    DecoderFamily{.type = "llama aquila baichuan solar deepseek granite internlm3 xverse minicpm_v yi codellama helium "
                          "smollm mobilellm diffllama InternLM3 ",
                  .defaults = kLlamaDefaults},
    DecoderFamily{.type = "mistral ministral mistral3 ministral3 ",
                  .qkv_bias = kNo,
                  .out_bias = kNo,
                  .window = WindowRule::kAll,
                  .defaults = kMistralDefaults},
    DecoderFamily{.type = "mixtral ", .qkv_bias = kNo, .out_bias = kNo, .window = WindowRule::kAll},
    DecoderFamily{.type = "minicpm smollm3 exaone ", .tied = true},
    DecoderFamily{.type = "internlm ", .qkv_bias = {"bias", true}, .out_bias = {"bias", true}},
    DecoderFamily{.type = "internlm2 ", .qkv_bias = {"bias", false}, .out_bias = {"bias", false}},
    DecoderFamily{.type = "qwen2 qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text mimo dream ",
                  .qkv_bias = kYes,
                  .out_bias = kNo,
                  .window = WindowRule::kWhenUsed},
    DecoderFamily{.type = "qwen2_moe ",
                  .qkv_bias = {"qkv_bias", true},
                  .out_bias = kNo,
                  .shared_gate = true,
                  .window = WindowRule::kWhenUsed},
    DecoderFamily{.type = "qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text qwen3_vl qwen3_vl_moe qwen3_omni_moe_text "
                          "sdar sdar_moe ",
                  .qk_norm = kPerHead,
                  .window = WindowRule::kWhenUsed},
    DecoderFamily{.type = "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text ",
                  .qk_norm = kPerHead,
                  .shared_gate = true,
                  .mixer = mix_qwen3_next},
    DecoderFamily{.type = "qwen ", .qkv_bias = kYes, .out_bias = {"", false}, .ffn = feed_qwen1},
    DecoderFamily{.type = "seed_oss ", .qkv_bias = {"attention_bias", true}, .out_bias = {"attention_out_bias", false}},
    DecoderFamily{.type = "olmo ", .norm = NormKind::kNone},
    DecoderFamily{.type = "olmo2 ", .qk_norm = kWidth},
    DecoderFamily{.type = "olmo3 ", .qk_norm = kWidth, .window = WindowRule::kPeriod, .period = 4},
    DecoderFamily{.type = "olmoe flex_olmo ", .qk_norm = kWidth},
    DecoderFamily{.type = "exaone4 exaone_moe ", .qk_norm = kPerHead, .window = WindowRule::kPeriod, .period = 4},
    DecoderFamily{
        .type = "hunyuan_v1_moe hunyuan_v1_dense hunyuan ", .use_qk_norm = {"use_qk_norm", true}, .qk_norm = kPerHead},
    DecoderFamily{.type = "arcee ", .plain_mlp = true},
    DecoderFamily{.type = "afmoe ",
                  .norms = 4,
                  .qk_norm = kPerHead,
                  .expert_bias = true,
                  .window = WindowRule::kPeriod,
                  .period = 4,
                  .mixer = mix_gated_attention},
    DecoderFamily{.type = "openelm ",
                  .use_qk_norm = {"normalize_qk_projections", true},
                  .qk_norm = kPerHead,
                  .tied = true,
                  .ffn = feed_openelm},
    DecoderFamily{.type = "bitnet ", .tied = true, .extra = extra_bitnet},
    DecoderFamily{.type = "apertus ", .plain_mlp = true, .qk_norm = kPerHead, .extra = extra_apertus},
    DecoderFamily{.type = "nemotron ", .norm = kLayer, .plain_mlp = true},
    DecoderFamily{.type = "nemotron-nas deci ", .mixer = mix_deci, .ffn = feed_deci},
    DecoderFamily{.type = "gemma ", .tied = true, .defaults = kGemmaDefaults},
    DecoderFamily{.type = "gemma2 ",
                  .norms = 4,
                  .tied = true,
                  .window = WindowRule::kPeriod,
                  .period = 2,
                  .defaults = kGemmaDefaults},
    DecoderFamily{.type = "gemma3 gemma3_text ",
                  .norms = 4,
                  .qk_norm = kPerHead,
                  .tied = true,
                  .window = WindowRule::kPeriod,
                  .period = 6,
                  .defaults = kGemma3Defaults},
    DecoderFamily{.type = "gemma3n gemma3n_text ",
                  .norms = 4,
                  .qk_norm = kPerHead,
                  .tied = true,
                  .window = WindowRule::kPeriod,
                  .period = 5,
                  .extra = extra_gemma3n,
                  .outside = outside_gemma3n},
    DecoderFamily{.type = "gemma4 gemma4_text ",
                  .norms = 4,
                  .qk_norm = kPerHead,
                  .tied = true,
                  .mixer = mix_gemma4,
                  .ffn = feed_gemma4,
                  .extra = extra_gemma4,
                  .outside = outside_gemma4},
    DecoderFamily{
        .type = "cohere ", .norms = 1, .use_qk_norm = {"use_qk_norm", false}, .qk_norm = kEachHead, .tied = true},
    DecoderFamily{.type = "cohere2 ", .norms = 1, .tied = true, .window = WindowRule::kPeriod, .period = 4},
    DecoderFamily{.type = "phi3 phi3small phi4mm ", .qkv_bias = kNo, .out_bias = kNo, .window = WindowRule::kAll},
    DecoderFamily{.type = "phimoe ", .norm = kLayer, .head_bias = {"lm_head_bias", false}, .window = WindowRule::kAll},
    DecoderFamily{.type = "phi phi-msft mixformer-sequential ",
                  .norm = kLayer,
                  .norms = 1,
                  .plain_mlp = true,
                  .qkv_bias = kYes,
                  .out_bias = kYes,
                  .mlp_bias = kYes,
                  .head_bias = kYes},
    DecoderFamily{.type = "stablelm stablelm_epoch ",
                  .norm = kLayer,
                  .norms = 1,
                  .qkv_bias = {"use_qkv_bias", false},
                  .out_bias = kNo,
                  .mlp_bias = kNo,
                  .use_qk_norm = {"qk_layernorm", false},
                  .qk_norm = kEachHead,
                  .extra = extra_stablelm},
    DecoderFamily{.type = "orion ", .norm = kLayer},
    DecoderFamily{.type = "persimmon fuyu ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = kYes,
                  .out_bias = kYes,
                  .mlp_bias = kYes,
                  .use_qk_norm = {"qk_layernorm", true},
                  .qk_norm = kPerHead},
    DecoderFamily{.type = "starcoder2 ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = {"use_bias", true},
                  .out_bias = {"use_bias", true},
                  .mlp_bias = {"use_bias", true},
                  .tied = true,
                  .window = WindowRule::kAll},
    DecoderFamily{.type = "chatglm ",
                  .qkv_bias = {"add_qkv_bias", false},
                  .out_bias = {"add_bias_linear", false},
                  .mlp_bias = {"add_bias_linear", false}},
    DecoderFamily{.type = "glm ", .qkv_bias = {"attention_bias", true}, .out_bias = kNo},
    DecoderFamily{.type = "glm4 glm4v_text glm4v ", .norms = 4, .qkv_bias = {"attention_bias", false}, .out_bias = kNo},
    DecoderFamily{.type = "glm4_moe glm4v_moe_text glm4v_moe solar_open ",
                  .qkv_bias = {"attention_bias", false},
                  .out_bias = kNo,
                  .use_qk_norm = {"use_qk_norm", false},
                  .qk_norm = kPerHead,
                  .expert_bias = true},
    DecoderFamily{.type = "deepseek_v2 deepseek_vl_v2 "},
    DecoderFamily{.type = "deepseek_v3 kimi_k2 kimi_k25 glm_moe_dsa deepseek_v32 glm4_moe_lite axk1 youtu ",
                  .expert_bias = true},
    DecoderFamily{
        .type = "deepseek_v4 ", .expert_bias = true, .mixer = mix_deepseek_v4, .outside = outside_deepseek_v4},
    DecoderFamily{.type = "dots1 ", .qk_norm = kPerHead, .expert_bias = true},
    DecoderFamily{.type = "minicpm3 ", .tied = true},
    DecoderFamily{.type = "ernie4_5 ernie4_5_moe ernie4_5_moe_vl ernie4_5_vl_moe_text ",
                  .qkv_bias = {"use_bias", false},
                  .out_bias = {"use_bias", false},
                  .mlp_bias = {"use_bias", false},
                  .tied = true,
                  .expert_bias = true},
    DecoderFamily{.type = "bailing_moe ",
                  .qkv_bias = {"use_qkv_bias", false},
                  .out_bias = {"use_bias", false},
                  .use_qk_norm = {"use_qk_norm", false},
                  .qk_norm = kPerHead},
    DecoderFamily{.type = "bailing_moe_v2 bailing_moe_linear bailing_hybrid ",
                  .qkv_bias = {"use_qkv_bias", false},
                  .out_bias = {"use_bias", false},
                  .use_qk_norm = {"use_qk_norm", true},
                  .qk_norm = kPerHead,
                  .mixer = mix_bailing_linear},
    DecoderFamily{.type = "llama4 llama4_text ", .mixer = mix_llama4, .ffn = feed_llama4},
    DecoderFamily{.type = "gpt_oss ",
                  .qkv_bias = {"attention_bias", true},
                  .out_bias = {"attention_bias", true},
                  .window = WindowRule::kPeriod,
                  .period = 2,
                  .ffn = feed_gpt_oss},
    DecoderFamily{.type = "arctic ", .norms = 3, .ffn = feed_arctic},
    DecoderFamily{.type = "dbrx "},
    DecoderFamily{.type = "grok-1 grok-2 grok git ", .norms = 4, .tied = true},
    DecoderFamily{.type = "step3_text step3_vl step3 ", .mixer = mix_step3},
    DecoderFamily{.type = "mimo_v2_flash mimo_v2 ", .mixer = mix_mimo_v2},
    DecoderFamily{.type = "minimax_m2 ", .use_qk_norm = {"use_qk_norm", true}, .qk_norm = kWidth},
    DecoderFamily{.type = "minimax_m1 minimax_text_01 minimax MiniMaxText01 ", .mixer = mix_minimax},
    DecoderFamily{.type = "longcat_flash ", .norms = 4, .mixer = mix_longcat, .ffn = feed_longcat},
    DecoderFamily{.type = "granitemoe granitemoeshared "},
    DecoderFamily{.type = "granitemoehybrid ", .mixer = mix_granite_hybrid, .ffn = feed_granite_hybrid},
    DecoderFamily{.type = "jamba ", .mixer = mix_jamba},
    DecoderFamily{.type = "bamba ", .mixer = mix_bamba},
    DecoderFamily{.type = "zamba2 ",
                  .norms = 1,
                  .tied = true,
                  .mixer = mix_zamba2,
                  .ffn = feed_nothing,
                  .outside = outside_zamba2},
    DecoderFamily{.type = "falcon_h1 ", .mixer = mix_falcon_h1},
    DecoderFamily{.type = "nemotron_h ", .norms = 1, .plain_mlp = true, .mixer = mix_nemotron_h, .ffn = feed_nothing},
    DecoderFamily{.type = "kimi_linear kimi_k3 ", .expert_bias = true, .mixer = mix_kimi_linear, .ffn = feed_kimi},
    DecoderFamily{.type = "lfm2 lfm2_moe ", .qk_norm = kPerHead, .tied = true, .mixer = mix_lfm2, .ffn = feed_lfm2},
    DecoderFamily{.type = "recurrent_gemma ",
                  .out_bias = {"", false},
                  .mlp_bias = kYes,
                  .tied = true,
                  .mixer = mix_recurrent_gemma,
                  .ffn = feed_recurrent_gemma},
    DecoderFamily{.type = "mamba falcon_mamba ",
                  .norms = 1,
                  .tied = true,
                  .mixer = mix_mamba,
                  .ffn = feed_nothing,
                  .outside = outside_mamba},
    DecoderFamily{.type = "mamba2 ", .norms = 1, .mixer = mix_mamba2, .ffn = feed_nothing, .outside = outside_mamba},
    DecoderFamily{
        .type = "rwkv rwkv5 rwkv6 ", .norm = kLayer, .mixer = mix_rwkv, .ffn = feed_rwkv, .outside = outside_rwkv},
    DecoderFamily{.type = "rwkv7 ", .norm = kLayer, .mixer = mix_rwkv7, .ffn = feed_rwkv7, .outside = outside_rwkv},
    // The generations before Llama.
    DecoderFamily{.type = "gpt2 gpt_bigcode ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = kYes,
                  .out_bias = kYes,
                  .mlp_bias = kYes,
                  .tied = true,
                  .positions = 0},
    DecoderFamily{.type = "gptj codegen ",
                  .norm = kLayer,
                  .norms = 1,
                  .plain_mlp = true,
                  .qkv_bias = kNo,
                  .out_bias = kNo,
                  .mlp_bias = kYes,
                  .head_bias = kYes},
    DecoderFamily{.type = "gpt_neo ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = kNo,
                  .out_bias = kYes,
                  .mlp_bias = kYes,
                  .tied = true,
                  .positions = 0,
                  .window = WindowRule::kAlternateLocal},
    DecoderFamily{.type = "gpt_neox ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = {"attention_bias", true},
                  .out_bias = {"attention_bias", true},
                  .mlp_bias = kYes},
    DecoderFamily{.type = "bloom ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = kYes,
                  .out_bias = kYes,
                  .mlp_bias = kYes,
                  .tied = true,
                  .outside = outside_bloom},
    DecoderFamily{.type = "opt ",
                  .norm = kLayer,
                  .plain_mlp = true,
                  .qkv_bias = {"enable_bias", true},
                  .out_bias = {"enable_bias", true},
                  .mlp_bias = {"enable_bias", true},
                  .tied = true,
                  .positions = 2,
                  .outside = outside_opt},
    DecoderFamily{.type = "mpt ", .plain_mlp = true, .tied = true, .outside = outside_mpt},
    DecoderFamily{.type = "falcon RefinedWeb RefinedWebModel ",
                  .norm = kLayer,
                  .norms = 0,
                  .plain_mlp = true,
                  .qkv_bias = {"bias", false},
                  .out_bias = {"bias", false},
                  .mlp_bias = {"bias", false},
                  .tied = true,
                  .mixer = mix_falcon},
};

constexpr std::array<std::string_view, 8> kEncoderDecoders = {
    "t5 mt5 umt5 longt5 switch_transformers t5gemma ",
    "bart mbart mvp plbart ",
    "pegasus pegasus_x bigbird_pegasus ",
    "marian m2m_100 nllb-moe seamless_m4t ",
    "whisper speech_to_text ",
    "blenderbot blenderbot-small ",
    "prophetnet led fsmt ",
    "encoder-decoder vision-encoder-decoder florence2 ",
};
constexpr std::array<std::string_view, 4> kEncoders = {
    "bert roberta xlm-roberta distilbert albert electra deberta deberta-v2 camembert mpnet ",
    "modernbert nomic_bert new gte jina_bert funnel xlnet ",
    "vit clip siglip dinov2 clip_text_model siglip_vision_model ",
    "wav2vec2 hubert wavlm ",
};

bool listed(std::string_view list, std::string_view type) {
  if (type.empty() || type.find(' ') != std::string_view::npos) return false;
  const std::string word = std::string(type) + ' ';
  const std::size_t at = list.find(word);
  if (at == 0) return true;
  return list.find(' ' + word) != std::string_view::npos;
}

}  // namespace

const DecoderFamily* decoder_family(std::string_view model_type) {
  for (const DecoderFamily& family : kFamilies) {
    if (listed(family.type, model_type)) return &family;
  }
  return nullptr;
}

std::string_view not_a_decoder(std::string_view model_type) {
  for (const std::string_view types : kEncoderDecoders) {
    if (listed(types, model_type)) return "an encoder-decoder";
  }
  for (const std::string_view types : kEncoders) {
    if (listed(types, model_type)) return "an encoder, which does not generate";
  }
  return {};
}

}  // namespace rooflined::model
