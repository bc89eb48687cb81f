#include "daemon/deploy_desk.h"

#include "daemon/local_socket.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

using namespace rooflined;
using namespace rooflined::daemon;

namespace {

// A desk, and a thread that comes round as the capture thread does.
struct Bench {
  TemporaryFolder folder;
  std::string path = folder.path() + "/control.sock";
  DeployDesk desk{{folder.path(), path}};
  std::atomic<bool> over{false};
  std::thread capture;

  Bench() {
    desk.start();
    capture = std::thread([this] {
      while (!over.load()) {
        desk.answer([](const Mark& mark) -> Result<std::uint64_t> {
          if (mark.target != "chat") return Error{ErrorCode::kNotFound, "target " + mark.target, "no such target"};
          return mark.accept ? 7 : 8;
        });
        std::this_thread::yield();
      }
    });
  }
  ~Bench() {
    over.store(true);
    capture.join();
  }

  // What comes back to a line; empty: nothing did.
  std::string say(const std::string& line) const {
    const auto fd = connect_locally(path);
    if (!fd) return fd.error().message();
    const LocalConnection connection(*fd, std::chrono::seconds(10));
    if (!connection.write_line(line)) return "";  // the desk had enough of it
    const auto answer = connection.read_line(kMarkLineBytesMax);
    return answer ? *answer : "";
  }
};

}  // namespace

TEST_CASE("a mark goes to the capture thread, and its answer back") {
  const Bench bench;
  CHECK(bench.say(mark_line({"chat", "v2", false})) == R"({"generation":8})");
  CHECK(bench.say(mark_line({"chat", "", true})) == R"({"generation":7})");
  CHECK(bench.say(mark_line({"mail", "", false})) == R"({"error":"target mail: no such target"})");
}

TEST_CASE("what is no mark is answered with what is wrong, and the next one is served") {
  const Bench bench;
  CHECK(bench.say("hello") == R"({"error":"not a line with a JSON object"})");
  CHECK(bench.say("{}") == R"({"error":"a mark needs a \"target\""})");
  CHECK(bench.say(std::string(100'000, 'x')).empty());
  CHECK(bench.say(mark_line({"chat", "", false})) == R"({"generation":8})");
}

TEST_CASE("the socket is for the daemon's user and group") {
  const Bench bench;
  struct stat status {};
  REQUIRE(::stat(bench.path.c_str(), &status) == 0);
  CHECK(S_ISSOCK(status.st_mode));
  CHECK((status.st_mode & 0777) == 0660);
}

TEST_CASE("a socket that a killed daemon left is replaced, one that is served is not") {
  Bench bench;
  const auto second = listen_locally(bench.path);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kBusy);
  const std::string left = bench.folder.path() + "/left.sock";
  const auto first = listen_locally(left);
  REQUIRE(first);
  ::close(*first);
  const auto again = listen_locally(left);
  REQUIRE(again);
  ::close(*again);
  CHECK_FALSE(listen_locally(std::string(200, 'x')));
  CHECK_FALSE(listen_locally(bench.folder.path() + "/none/control.sock"));
  bench.folder.write("file", "kept");
  CHECK_FALSE(listen_locally(bench.folder.path() + "/file"));
  CHECK(bench.folder.read("file") == "kept");
}

TEST_CASE("without a capture thread that comes round the answer says so") {
  const TemporaryFolder folder;
  DeployDesk desk({folder.path(), folder.path() + "/control.sock"});
  desk.start();
  const auto fd = connect_locally(folder.path() + "/control.sock");
  REQUIRE(fd);
  const LocalConnection connection(*fd, std::chrono::seconds(10));
  REQUIRE(connection.write_line(mark_line({"chat", "", false})));
  const auto answer = connection.read_line(kMarkLineBytesMax);
  REQUIRE(answer);
  CHECK(answer->find("busy") != std::string::npos);
}

TEST_CASE("what is handed over last is in the file when the desk has stopped") {
  const TemporaryFolder folder;
  DeployDesk desk({folder.path(), folder.path() + "/control.sock"});
  desk.start();
  for (std::uint64_t generation = 1; generation <= 3; ++generation) {
    KeptDeploys kept;
    kept.key = {"llama.cpp", "m", 8080, 0};
    kept.state.current.generation = generation;
    desk.keep({kept});
  }
  desk.stop();
  const auto loaded = load_deploys(folder.path());
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].state.current.generation == 3);
  CHECK(::access((folder.path() + "/control.sock").c_str(), F_OK) != 0);
}

TEST_CASE("lines of the control socket") {
  const auto mark = parse_mark(mark_line({"chat", "v\"2\n", false}));
  REQUIRE(mark);
  CHECK(mark->target == "chat");
  CHECK(mark->version == "v\"2 ");
  CHECK(mark_line({"chat", "v\n2", false}).find('\n') == std::string::npos);
  CHECK_FALSE(parse_mark("[]"));
  CHECK_FALSE(parse_mark(R"({"target": 5})"));
  CHECK_FALSE(parse_mark(std::string(5000, ' ')));
  CHECK_FALSE(parse_mark(R"({"target":"a","accept":"yes"})")->accept);
  CHECK(parse_mark(R"({"target":"a","accept":true,"more":[1]})")->accept);
  CHECK(parse_mark_answer(R"({"generation":3})")->generation == 3);
  CHECK(parse_mark_answer(R"({"error":"no"})")->error == "no");
  CHECK_FALSE(parse_mark_answer("{}"));
  CHECK_FALSE(parse_mark_answer(R"({"generation":-3})"));
}
