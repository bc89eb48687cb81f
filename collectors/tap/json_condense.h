// Copies JSON without most of what its long strings and long lists of numbers hold: a frame of megabytes is one that
// repeats the whole conversation, as text or as token ids, and none of that is looked at.
//
// What comes out is JSON where the input is. One pass, no state, any thread.

#pragma once

#include "collectors/tap/http_buffer.h"

#include <cstddef>
#include <string_view>

namespace rooflined::tap {

// False: there is more than `bytes_max` even so.
bool condense_json(std::string_view text, TextBuffer& out, std::size_t bytes_max);

}  // namespace rooflined::tap
