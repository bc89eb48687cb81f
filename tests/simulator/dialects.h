// The makers that make_dialect() chooses from, one a dialect file.

#pragma once

#include "tests/simulator/dialect.h"

#include <memory>

namespace rooflined::simulator {

std::unique_ptr<Dialect> make_openai_dialect();
std::unique_ptr<Dialect> make_vllm_dialect();
std::unique_ptr<Dialect> make_vllm_force_usage_dialect();
std::unique_ptr<Dialect> make_sglang_dialect();
std::unique_ptr<Dialect> make_llama_cpp_dialect();
std::unique_ptr<Dialect> make_ollama_dialect();

}  // namespace rooflined::simulator
