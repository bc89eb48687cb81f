#include "collectors/ceiling/cgroup.h"

#include "collectors/ceiling/system_files.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace rooflined::ceiling {
namespace {

constexpr std::size_t kLevelsMax = 64;

// The path of the own group for a version 1 controller, or for version 2 where `controller` is empty; "/" when unknown.
std::string own_path(std::string_view memberships, std::string_view controller) {
  std::string path = "/";
  for_each_line(memberships, [&](std::string_view line) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) return;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    bool mine = controllers == controller;
    while (!mine && !controllers.empty()) {
      const std::size_t comma = controllers.find(',');
      mine = !controller.empty() && controllers.substr(0, comma) == controller;
      controllers = comma == std::string_view::npos ? std::string_view() : controllers.substr(comma + 1);
    }
    if (mine) path = line.substr(second + 1);
  });
  // Outside of the namespace the kernel shows "/../x": nothing that can be read from here.
  if (!path.starts_with('/') || path.find("..") != std::string::npos) path = "/";
  return path;
}

// "/a/b" → "/a/b", "/a", "".
std::vector<std::string> levels(std::string path) {
  std::vector<std::string> all;
  while (all.size() < kLevelsMax) {
    while (path.ends_with('/')) path.pop_back();
    all.push_back(path);
    if (path.empty()) break;
    path.resize(path.rfind('/'));
  }
  return all;
}

// The folders of this process's groups, from its own one up to the root of each hierarchy.
struct Groups {
  explicit Groups(const std::string& root) {
    const std::string memberships = read_system_file(root, "/proc/self/cgroup").value_or("");
    add(memberships, "", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, v2);
    add(memberships, "cpu", {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu"}, v1_cpu);
    add(memberships, "memory", {"/sys/fs/cgroup/memory"}, v1_memory);
    add(memberships, "cpuset", {"/sys/fs/cgroup/cpuset"}, v1_cpuset);
  }

  std::vector<std::string> v2, v1_cpu, v1_memory, v1_cpuset;

 private:
  static void add(std::string_view memberships, std::string_view controller, std::initializer_list<const char*> mounts,
                  std::vector<std::string>& folders) {
    for (const char* mount : mounts) {
      for (const auto& level : levels(own_path(memberships, controller))) folders.push_back(mount + level);
    }
  }
};

class Reader {
 public:
  explicit Reader(const std::string& root) : root_(root) {}

  CgroupLimits read() {
    const Groups groups(root_);
    for (const std::string& folder : groups.v2) read_v2(folder);
    for (const std::string& folder : groups.v1_cpu) read_v1_cpu(folder);
    for (const std::string& folder : groups.v1_memory) {
      limit_memory(read_system_integer(root_, folder + "/memory.limit_in_bytes"),
                   read_system_integer(root_, folder + "/memory.usage_in_bytes"));
    }
    for (const auto* folders : {&groups.v2, &groups.v1_cpuset}) {
      // The effective ones hold what the levels above leave: the first level that says something says it all.
      first_list(*folders, {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"}, limits_.cpuset_cpus);
      first_list(*folders, {"/cpuset.mems.effective", "/cpuset.effective_mems", "/cpuset.mems"}, limits_.cpuset_nodes);
    }
    return limits_;
  }

 private:
  void read_v2(const std::string& folder) {
    if (const auto text = read_system_file(root_, folder + "/cpu.max")) {  // "400000 100000" or "max 100000"
      const std::string_view line = trimmed(*text);
      const std::size_t space = line.find(' ');
      const auto quota = parse_integer(line.substr(0, space));
      const auto period = space == std::string_view::npos ? std::nullopt : parse_integer(line.substr(space));
      if (quota) limit_cpus(*quota, period.value_or(100000));
    }
    const auto usage = read_system_integer(root_, folder + "/memory.current");
    // Over memory.high the group is reclaimed from, which is what must not happen.
    limit_memory(read_system_integer(root_, folder + "/memory.max"), usage);
    limit_memory(read_system_integer(root_, folder + "/memory.high"), usage);
  }

  void first_list(const std::vector<std::string>& folders, std::initializer_list<const char*> files,
                  std::vector<int>& list) const {
    for (const std::string& folder : folders) {
      for (const char* file : files) {
        if (list.empty()) list = parse_cpu_list(read_system_file(root_, folder + file).value_or(""));
      }
    }
  }

  void read_v1_cpu(const std::string& folder) {
    const auto quota = read_system_integer(root_, folder + "/cpu.cfs_quota_us");  // -1: none
    const auto period = read_system_integer(root_, folder + "/cpu.cfs_period_us");
    if (quota && period) limit_cpus(*quota, *period);
  }

  void limit_cpus(std::uint64_t quota, std::uint64_t period) {
    if (period == 0) return;
    const double cpus = static_cast<double>(quota) / static_cast<double>(period);
    limits_.cpus = std::min(limits_.cpus.value_or(cpus), cpus);
  }

  void limit_memory(std::optional<std::uint64_t> limit, std::optional<std::uint64_t> usage) {
    if (!limit) return;
    const Bytes room = *limit - std::min(*limit, usage.value_or(0));
    limits_.memory_room = std::min(limits_.memory_room.value_or(room), room);
  }

  const std::string& root_;
  CgroupLimits limits_;
};

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  return Reader(root).read();
}

std::uint64_t read_throttled_periods(const std::string& root) {
  const Groups groups(root);
  std::uint64_t periods = 0;
  for (const auto* folders : {&groups.v2, &groups.v1_cpu}) {
    for (const std::string& folder : *folders) {
      periods += value_of_line(read_system_file(root, folder + "/cpu.stat").value_or(""), "nr_throttled").value_or(0);
    }
  }
  return periods;
}

}  // namespace rooflined::ceiling
