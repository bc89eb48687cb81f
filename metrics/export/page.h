// The live page for people: one file that draws /api/v1/state and /api/v1/history, with its style and its scripts in
// it. Built from the files in page/. Thread rule: constants.

#pragma once

#include <string>
#include <string_view>

namespace rooflined::metrics_export {

std::string_view page_html();

// The Content-Security-Policy under which it works: its own style and script by their hashes, requests to its own
// origin, and nothing else.
std::string page_policy(std::string_view html);

}  // namespace rooflined::metrics_export
