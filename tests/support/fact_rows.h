// The rows of one table of reference figures (data/facts/NAME.csv beside the test): plain commas, names in the first
// line.

#pragma once

#include "tests/support/catch.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace rooflined::test {

using FactRow = std::map<std::string, std::string>;

inline std::vector<FactRow> fact_rows(const std::string& data, const std::string& name) {
  std::ifstream file(data + "/facts/" + name + ".csv");
  std::vector<std::string> names;
  std::vector<FactRow> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::vector<std::string> values;
    for (std::string value; std::getline(fields, value, ',');) values.push_back(value);
    if (names.empty()) {
      names = values;
      continue;
    }
    FactRow row;
    for (std::size_t at = 0; at < values.size(); ++at) row[names.at(at)] = values[at];
    all.push_back(std::move(row));
  }
  REQUIRE_FALSE(all.empty());
  return all;
}

inline double number(const FactRow& row, const std::string& name) {
  return std::stod(row.at(name));
}

}  // namespace rooflined::test
