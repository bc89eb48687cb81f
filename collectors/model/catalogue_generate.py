#!/usr/bin/env python3
"""Writes catalogue_table.inc: structural fields of published models by hub name.

    catalogue_generate.py CONFIGS > catalogue_table.inc

CONFIGS is a folder of config.json files (tests/collectors/model/data/hf/configs). NAMES says which file is which model
on the hub: in lower case, without "-instruct" and the like (catalogue.cc takes those off), without an owner where none is
the one.
"""

import json
import pathlib
import sys

NAMES = {
    "bamba-9b": "ibm-ai-platform/bamba-9b-v2 ibm-ai-platform/bamba-9b",
    "bloom-7b1": "bigscience/bloom-7b1",
    "codellama-34b": "codellama/codellama-34b",
    "dbrx-base": "databricks/dbrx",
    "deepseek-v2": "deepseek-ai/deepseek-v2",
    "deepseek-v3": "deepseek-ai/deepseek-v3 deepseek-ai/deepseek-v3-0324 deepseek-ai/deepseek-r1",
    "deepseek-v4-flash": "deepseek-ai/deepseek-v4-flash",
    "ernie-4.5-21b-a3b": "baidu/ernie-4.5-21b-a3b",
    "exaone-4.0-32b": "lgai-exaone/exaone-4.0-32b",
    "falcon-40b": "tiiuae/falcon-40b",
    "falcon-7b": "tiiuae/falcon-7b",
    "gemma-2-27b": "google/gemma-2-27b",
    "gemma-2b": "google/gemma-2b google/gemma-1.1-2b",
    "gemma-3-1b": "google/gemma-3-1b",
    "gemma-3-27b": "google/gemma-3-27b",
    "gemma-3n-e2b": "google/gemma-3n-e2b",
    "gemma-3n-e4b": "google/gemma-3n-e4b",
    "gemma-4-26b-a4b": "google/gemma-4-26b-a4b",
    "glm-4.5": "zai-org/glm-4.5 zai-org/glm-4.6",
    "glm-4.5-air": "zai-org/glm-4.5-air",
    "glm-5": "zai-org/glm-5",
    "gpt-neox-20b": "eleutherai/gpt-neox-20b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "granite-3.1-3b-a800m": "ibm-granite/granite-3.1-3b-a800m",
    "granite-4.0-h-small": "ibm-granite/granite-4.0-h-small",
    "hunyuan-a13b": "tencent/hunyuan-a13b",
    "jamba-v0.1": "ai21labs/jamba-v0.1",
    "llama-2-7b": "meta-llama/llama-2-7b",
    "llama-3-8b": "meta-llama/meta-llama-3-8b meta-llama/llama-3-8b",
    "llama-3.1-70b": "meta-llama/llama-3.1-70b meta-llama/llama-3.3-70b meta-llama/meta-llama-3.1-70b",
    "llama-3.1-8b": "meta-llama/llama-3.1-8b meta-llama/meta-llama-3.1-8b",
    "llama-3.2-3b": "meta-llama/llama-3.2-3b",
    "llama-4-scout": "meta-llama/llama-4-scout-17b-16e",
    "mimo-v2-flash": "xiaomimimo/mimo-v2-flash",
    "minicpm3-4b": "openbmb/minicpm3-4b",
    "minimax-m1-80k": "minimaxai/minimax-m1-80k minimaxai/minimax-m1-40k",
    "minimax-m2.5": "minimaxai/minimax-m2.5 minimaxai/minimax-m2 minimaxai/minimax-m2.1",
    "mistral-7b-v0.1": "mistralai/mistral-7b-v0.1",
    "mistral-nemo-12b": "mistralai/mistral-nemo-2407 mistral-nemo",
    "mixtral-8x7b": "mistralai/mixtral-8x7b-v0.1 mixtral-8x7b",
    "nemotron-3-nano-30b-a3b": "nvidia/nvidia-nemotron-3-nano-30b-a3b-bf16",
    "nemotron-h-8b": "nvidia/nemotron-h-8b-8k",
    "olmo3-7b": "allenai/olmo-3-7b",
    "opt-125m": "facebook/opt-125m",
    "opt-6.7b": "facebook/opt-6.7b",
    "phi-3-mini": "microsoft/phi-3-mini-128k",
    "phi-3.5-mini": "microsoft/phi-3.5-mini",
    "phi-4": "microsoft/phi-4",
    "pythia-6.9b": "eleutherai/pythia-6.9b",
    "qwen-7b": "qwen/qwen-7b",
    "qwen2.5-1.5b": "qwen/qwen2.5-1.5b",
    "qwen2.5-7b": "qwen/qwen2.5-7b qwen/qwen2.5-coder-7b",
    "qwen3-0.6b": "qwen/qwen3-0.6b",
    "qwen3-14b": "qwen/qwen3-14b",
    "qwen3-235b-a22b-nvfp4": "qwen/qwen3-235b-a22b",
    "qwen3-30b-a3b": "qwen/qwen3-30b-a3b qwen/qwen3-coder-30b-a3b",
    "qwen3-30b-a3b-fp8": "qwen/qwen3-30b-a3b-fp8",
    "qwen3-32b": "qwen/qwen3-32b",
    "qwen3-8b": "qwen/qwen3-8b",
    "qwen3.5-27b": "qwen/qwen3.5-27b",
    "qwen3.5-397b-a17b": "qwen/qwen3.5-397b-a17b",
    "starcoder2": "bigcode/starcoder2-7b",
    "step3": "stepfun-ai/step3",
}
# Of no use to a shape; and lists of modules, of which the method alone matters.
LEFT_OUT = ("rope_", "vision_config", "audio_config", "max_position", "torch_dtype_", "attn_pdrop", "modules_to_not_convert",
            "eoa_", "boa_", "boi_", "eoi_", "activation_sparsity_pattern", "hidden_act", "rms_norm", "layer_norm")


def structural(value):
    if isinstance(value, dict):
        return {k: structural(v) for k, v in value.items() if v is not None and not k.startswith(LEFT_OUT)}
    return value


def main():
    print("// Made by catalogue_generate.py: names, and the structural fields of a config.json.")
    for stem, names in sorted(NAMES.items()):
        config = json.loads((pathlib.Path(sys.argv[1]) / f"{stem}.json").read_text())
        text = json.dumps(structural(config), separators=(",", ":"))
        print(f'{{"{names} ", R"({text})"}},')


if __name__ == "__main__":
    main()
