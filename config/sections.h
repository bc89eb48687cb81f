// The known settings, section by section: which key is read into which member, within which bounds. Used by the reader.

#pragma once

#include "config/key.h"

#include <span>

namespace rooflined::config {

std::span<const Key<WebConfig>> web_keys();
std::span<const Key<StateConfig>> state_keys();
std::span<const Key<CaptureConfig>> capture_keys();
std::span<const Key<ServerConfig>> server_keys();
std::span<const Key<WindowsConfig>> windows_keys();
std::span<const Key<CeilingConfig>> ceiling_keys();
std::span<const Key<LimitsConfig>> limits_keys();
std::span<const Key<TargetConfig>> target_keys();

}  // namespace rooflined::config
