// The families of decoders that are known, by `model_type`: a table of how each differs from a Llama, and small
// functions for what a table cannot say.
//
// A new architecture is a row in hf_families.cc, with a function in hf_hybrids.cc, hf_gemma.cc or hf_unusual.cc where
// it has parts of its own. Thread rule: pure functions.

#pragma once

#include "collectors/model/hf_config.h"
#include "collectors/model/hf_decoder.h"
#include "collectors/model/hf_layout.h"

#include <string_view>

namespace rooflined::model {

// nullptr: not known.
const DecoderFamily* decoder_family(std::string_view model_type);
// Encoder-decoders, encoders and the like, that do not decode with one stack: what the type is, or empty.
std::string_view not_a_decoder(std::string_view model_type);

// hf_hybrids.cc: layers of more than one kind.
void mix_jamba(LayerContext& layer);
void mix_bamba(LayerContext& layer);
void mix_granite_hybrid(LayerContext& layer);
void feed_granite_hybrid(LayerContext& layer);
void mix_falcon_h1(LayerContext& layer);
void mix_nemotron_h(LayerContext& layer);
void feed_nothing(LayerContext& layer);
void mix_qwen3_next(LayerContext& layer);
void mix_kimi_linear(LayerContext& layer);
void feed_kimi(LayerContext& layer);
void mix_minimax(LayerContext& layer);
void mix_lfm2(LayerContext& layer);
void feed_lfm2(LayerContext& layer);
void mix_recurrent_gemma(LayerContext& layer);
void feed_recurrent_gemma(LayerContext& layer);
void mix_bailing_linear(LayerContext& layer);
void mix_gated_attention(LayerContext& layer);
void mix_zamba2(LayerContext& layer);
void outside_zamba2(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);

// hf_gemma.cc
void extra_gemma3n(LayerContext& layer);
void outside_gemma3n(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);
void mix_gemma4(LayerContext& layer);
void feed_gemma4(LayerContext& layer);
void extra_gemma4(LayerContext& layer);
void outside_gemma4(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);

// hf_compressed.cc
void mix_deepseek_v4(LayerContext& layer);
void outside_deepseek_v4(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);

// hf_unusual.cc: one of a kind.
void mix_falcon(LayerContext& layer);
void extra_stablelm(LayerContext& layer);
void outside_bloom(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);
void outside_opt(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);
void outside_mpt(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);
void feed_qwen1(LayerContext& layer);
void feed_llama4(LayerContext& layer);
void mix_llama4(LayerContext& layer);
void feed_gpt_oss(LayerContext& layer);
void feed_arctic(LayerContext& layer);
void mix_deci(LayerContext& layer);
void feed_deci(LayerContext& layer);
void mix_step3(LayerContext& layer);
void mix_mimo_v2(LayerContext& layer);
void mix_mamba(LayerContext& layer);
void mix_mamba2(LayerContext& layer);
void outside_mamba(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);
void mix_rwkv(LayerContext& layer);
void feed_rwkv(LayerContext& layer);
void outside_rwkv(HfConfig& config, const DecoderFamily& family, const DecoderSizes& sizes, Layout& layout);
void mix_rwkv7(LayerContext& layer);
void feed_rwkv7(LayerContext& layer);
void mix_longcat(LayerContext& layer);
void feed_longcat(LayerContext& layer);
void extra_apertus(LayerContext& layer);
void feed_openelm(LayerContext& layer);
void extra_bitnet(LayerContext& layer);

}  // namespace rooflined::model
