// What `rooflined doctor` says: from what is seen of this host and of the running daemon, to what works, what does not,
// and what mends it.
//
//   in:   DoctorFacts, gathered by command_doctor.cc
//   out:  findings in the order in which a person would mend them
//
// Pure. Threads: any.

#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::daemon {

// A model file that a server here names, or that the settings name.
struct DoctorModel {
  std::string target;
  std::uint16_t port = 0;
  std::string path;    // as told; empty: the server does not say
  std::string reader;  // the user whose reading was tried
  std::string error;   // empty: it can be read
  std::string group;   // of the file, where joining that group would make it readable
};

struct DoctorFacts {
  std::string settings_path;
  std::vector<std::string> settings_errors;  // as file:line:column: message

  std::string interface;  // "any", or a name
  bool interface_there = true;
  bool interface_up = true;
  std::string capture_error;  // empty: packets can be captured (or the daemon does)

  std::string endpoint;                   // where the daemon should answer: "127.0.0.1:10074"
  bool open_to_network = false;           // listens on more than loopback …
  bool protected_by_auth = false;         // … and asks for a password
  std::string state_error;                // why it did not answer; empty: it did
  const nlohmann::json* state = nullptr;  // of /api/v1/state

  std::vector<std::uint16_t> ports;            // that are watched
  std::vector<std::uint16_t> listening_ports;  // those of them on which something here listens
  std::vector<std::uint16_t> remote_ports;     // those of them on which a client here talks to another host

  std::vector<DoctorModel> models;

  bool pressure_shown = true;  // /proc/pressure
  std::string no_room;         // why a bandwidth probe has no room; empty: it has
};

enum class Health : std::uint8_t { kWorks, kHint, kBroken };
std::string_view health_name(Health health);

struct Finding {
  Health health = Health::kWorks;
  std::string topic;  // "capture", "port 8080", …
  std::string text;
  std::vector<std::string> fix;  // lines to type or to add
};

std::vector<Finding> diagnose(const DoctorFacts& facts);

}  // namespace rooflined::daemon
