// What was published on the speed of quantisation formats, one core design: the Cortex-A76 of a Raspberry Pi 5.
//
// Qwen2.5-0.5B-Instruct and 1.5B-Instruct, quantised from the official FP16 file into eight and five formats, run by
// llama-bench -p 128 -n 128 with five repetitions, one format after another; perplexity over 100 chunks of 512 tokens,
// at 0.5B only. The dataset is doi:10.5281/zenodo.21938812, in the matrix of llama-roofline. Rows of other cores
// were withdrawn there, and so was energy. Constants; threads: any.

#pragma once

#include "metrics/format_advice.h"

#include <vector>

namespace rooflined::daemon {

inline constexpr const char* kFormatSource =
    "Qwen2.5-Instruct by llama-bench -p 128 -n 128 on a Raspberry Pi 5 (Cortex-A76), doi:10.5281/zenodo.21938812";

std::vector<FormatMeasurement> published_formats();

}  // namespace rooflined::daemon
