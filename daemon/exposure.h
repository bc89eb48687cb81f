// Whether others than this host may ask for the metrics, and whether they are asked for a password.

#pragma once

#include "config/config.h"

#include <optional>
#include <string>

namespace rooflined::daemon {

// A name other than localhost counts as open: what it means is the resolver's to say.
bool open_to_network(const std::string& listen);

// One sentence for a person where the endpoint is open and asks for no password.
std::optional<std::string> exposure_of(const config::WebConfig& web);

}  // namespace rooflined::daemon
