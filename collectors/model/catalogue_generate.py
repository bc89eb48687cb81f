#!/usr/bin/env python3
"""Writes catalogue_table.inc: structural fields of published models by hub name.

    catalogue_generate.py CONFIGS > catalogue_table.inc

CONFIGS is a folder of config.json files (tests/collectors/model/data/hf/configs). NAMES says which file is which model
on the hub: the part behind the owner, in lower case, without "-instruct" and the like (catalogue.cc takes those off).
"""

import json
import pathlib
import sys

NAMES = {
    "bamba-9b": "bamba-9b-v2 bamba-9b", "bloom-7b1": "bloom-7b1", "codellama-34b": "codellama-34b",
    "dbrx-base": "dbrx", "deepseek-v2": "deepseek-v2", "deepseek-v3": "deepseek-v3 deepseek-v3-0324 deepseek-r1",
    "deepseek-v4-flash": "deepseek-v4-flash", "ernie-4.5-21b-a3b": "ernie-4.5-21b-a3b",
    "exaone-4.0-32b": "exaone-4.0-32b", "falcon-40b": "falcon-40b", "falcon-7b": "falcon-7b",
    "gemma-2-27b": "gemma-2-27b", "gemma-2b": "gemma-2b gemma-1.1-2b", "gemma-3-1b": "gemma-3-1b",
    "gemma-3-27b": "gemma-3-27b", "gemma-3n-e2b": "gemma-3n-e2b", "gemma-3n-e4b": "gemma-3n-e4b",
    "gemma-4-26b-a4b": "gemma-4-26b-a4b", "glm-4.5": "glm-4.5 glm-4.6", "glm-4.5-air": "glm-4.5-air",
    "glm-5": "glm-5", "gpt-neox-20b": "gpt-neox-20b", "gpt-oss-120b": "gpt-oss-120b", "gpt-oss-20b": "gpt-oss-20b",
    "granite-3.1-3b-a800m": "granite-3.1-3b-a800m", "granite-4.0-h-small": "granite-4.0-h-small",
    "hunyuan-a13b": "hunyuan-a13b", "jamba-v0.1": "jamba-v0.1", "llama-2-7b": "llama-2-7b",
    "llama-3-8b": "meta-llama-3-8b llama-3-8b", "llama-3.1-70b": "llama-3.1-70b llama-3.3-70b meta-llama-3.1-70b",
    "llama-3.1-8b": "llama-3.1-8b meta-llama-3.1-8b", "llama-3.2-3b": "llama-3.2-3b",
    "llama-4-scout": "llama-4-scout-17b-16e", "mimo-v2-flash": "mimo-v2-flash", "minicpm3-4b": "minicpm3-4b",
    "minimax-m1-80k": "minimax-m1-80k minimax-m1-40k", "minimax-m2.5": "minimax-m2.5 minimax-m2 minimax-m2.1",
    "mistral-7b-v0.1": "mistral-7b-v0.1", "mistral-nemo-12b": "mistral-nemo-2407 mistral-nemo",
    "mixtral-8x7b": "mixtral-8x7b-v0.1 mixtral-8x7b", "nemotron-3-nano-30b-a3b": "nvidia-nemotron-3-nano-30b-a3b-bf16",
    "nemotron-h-8b": "nemotron-h-8b-8k", "olmo3-7b": "olmo-3-7b", "opt-125m": "opt-125m", "opt-6.7b": "opt-6.7b",
    "phi-3-mini": "phi-3-mini-128k", "phi-3.5-mini": "phi-3.5-mini", "phi-4": "phi-4", "pythia-6.9b": "pythia-6.9b",
    "qwen-7b": "qwen-7b", "qwen2.5-1.5b": "qwen2.5-1.5b", "qwen2.5-7b": "qwen2.5-7b qwen2.5-coder-7b",
    "qwen3-0.6b": "qwen3-0.6b", "qwen3-14b": "qwen3-14b", "qwen3-235b-a22b-nvfp4": "qwen3-235b-a22b",
    "qwen3-30b-a3b": "qwen3-30b-a3b qwen3-coder-30b-a3b", "qwen3-30b-a3b-fp8": "qwen3-30b-a3b-fp8",
    "qwen3-32b": "qwen3-32b", "qwen3-8b": "qwen3-8b", "qwen3.5-27b": "qwen3.5-27b",
    "qwen3.5-397b-a17b": "qwen3.5-397b-a17b", "starcoder2": "starcoder2-7b", "step3": "step3",
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
