// A made-up /proc: who listens, and which file the server means.

#include "collectors/server/process.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"
#include "tests/support/temporary_folder.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::server;
using rooflined::test::containing;

namespace {

namespace fs = std::filesystem;

constexpr const char* kTableHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

Endpoint loopback(std::uint16_t port) {
  Endpoint endpoint;
  endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
  endpoint.port = port;
  return endpoint;
}

// A machine with one server: process 42 listens on 127.0.0.1:8080, its folder is /srv, its root is /jail.
class Machine {
 public:
  Machine() {
    fs::create_directories(root_ / "proc/net");
    table("net/tcp",
          "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 777 1 0\n");
    table("net/tcp6", "");
    process("42", "socket:[777]");
    process("41", "socket:[1]");
    fs::create_directories(root_ / "srv");
    fs::create_directories(root_ / "jail");
    fs::create_directory_symlink("/srv", root_ / "proc/42/cwd");
    fs::create_directory_symlink(root_ / "jail", root_ / "proc/42/root");
  }

  void table(const std::string& name, const std::string& rows) {
    std::ofstream(root_ / "proc" / name) << kTableHead << rows;
  }
  void process(const std::string& id, const std::string& socket) {
    fs::create_directories(root_ / "proc" / id / "fd");
    fs::create_symlink(socket, root_ / "proc" / id / "fd/3");
  }
  void file(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << path;
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  ProcessOptions options() const { return {path("proc"), root_.string()}; }

 private:
  TemporaryFolder folder_;
  fs::path root_ = folder_.path();
};

}  // namespace

TEST_CASE("the process behind a port") {
  Machine machine;
  CHECK(*find_listener(loopback(8080), machine.options()) == 42);
  CHECK(find_listener(loopback(9), machine.options()).error().message() == containing("no listening socket"));
  machine.process("7", "socket:[777]");  // a worker that inherited the socket, or the parent: the lowest id
  CHECK(*find_listener(loopback(8080), machine.options()) == 7);
}

TEST_CASE("a socket that no visible process holds") {
  Machine machine;
  fs::remove_all(machine.path("proc/42"));
  CHECK(find_listener(loopback(8080), machine.options()).error().message() == containing("no process holds"));
  CHECK(find_listener(loopback(8080), {"/nonexistent", ""}).error().message() == containing("no listening socket"));
}

TEST_CASE("an absolute path") {
  Machine machine;
  fs::remove(machine.path("proc/42/root"));
  machine.file("models/m.gguf");
  Result<FoundFile> found = locate_model("/models/m.gguf", loopback(8080), machine.options());
  REQUIRE(found.ok());
  CHECK(found->path == machine.path("models/m.gguf"));
  CHECK(found->how == FoundBy::kPath);
  found = locate_model("/models/m.gguf", loopback(9), machine.options());  // a process is not needed
  REQUIRE(found.ok());
  CHECK(found->how == FoundBy::kPath);
}

TEST_CASE("a server with a root of its own means the file there, even where one of that name is here") {
  Machine machine;
  machine.file("models/m.gguf");
  machine.file("jail/models/m.gguf");
  Result<FoundFile> found = locate_model("/models/m.gguf", loopback(8080), machine.options());
  REQUIRE(found.ok());
  CHECK(found->path == machine.path("proc/42/root/models/m.gguf"));
  CHECK(found->how == FoundBy::kServerRoot);
  fs::remove(machine.path("models/m.gguf"));
  found = locate_model("/models/m.gguf", loopback(8080), machine.options());
  REQUIRE(found.ok());
  CHECK(found->how == FoundBy::kServerRoot);
}

TEST_CASE("one and the same file goes by its plain path") {
  Machine machine;
  fs::remove(machine.path("proc/42/root"));
  fs::create_directory_symlink(machine.path(""), machine.path("proc/42/root"));
  machine.file("models/m.gguf");
  const Result<FoundFile> found = locate_model("/models/m.gguf", loopback(8080), machine.options());
  REQUIRE(found.ok());
  CHECK(found->path == machine.path("models/m.gguf"));
}

TEST_CASE("a relative path is the server's folder's") {
  Machine machine;
  machine.file("srv/m.gguf");
  Result<FoundFile> found = locate_model("m.gguf", loopback(8080), machine.options());
  REQUIRE(found.ok());
  CHECK(found->path == machine.path("srv/m.gguf"));
  CHECK(found->how == FoundBy::kFolder);
  found = locate_model("m.gguf", loopback(9), machine.options());
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().message() == containing("no listening socket"));
}

TEST_CASE("a model folder is found as well, and nothing else is") {
  Machine machine;
  fs::create_directories(machine.path("hub/qwen"));
  CHECK(locate_model("/hub/qwen", loopback(9), machine.options()).ok());
  CHECK_FALSE(locate_model("Qwen/Qwen2.5-7B", loopback(8080), machine.options()).ok());
  CHECK_FALSE(locate_model("", loopback(8080), machine.options()).ok());
  CHECK_FALSE(locate_model(std::string("a\0b", 3), loopback(8080), machine.options()).ok());
  CHECK_FALSE(locate_model(std::string(5000, 'x'), loopback(8080), machine.options()).ok());
  CHECK_FALSE(locate_model("/dev/null", loopback(9), {"/nonexistent", ""}).ok());
}
