// From the settings to the options of each part: the one place that knows both.

#pragma once

#include "collectors/tap/packet_source.h"
#include "config/config.h"
#include "daemon/ceiling_keeper.h"
#include "daemon/wiring.h"
#include "metrics/export/metrics_server.h"

#include <vector>

namespace rooflined::daemon {

tap::LiveOptions live_options(const config::Config& settings);
metrics_export::MetricsServer::Options web_options(const config::Config& settings);
LineOptions line_options(const config::Config& settings);
CeilingKeeper::Options ceiling_options(const config::Config& settings);
std::vector<TargetSettings> target_settings(const config::Config& settings);

// True where a difference lies in what cannot change while the daemon runs.
bool needs_restart(const config::Config& running, const config::Config& wanted);

// A GPU's device node is there: whether llama.cpp offloads to it cannot be known from outside.
bool gpu_present();
// Of the machine's last start; empty where it is not told.
std::string boot_id();

}  // namespace rooflined::daemon
