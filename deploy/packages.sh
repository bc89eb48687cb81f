# shellcheck shell=bash disable=SC2034
# The Debian packages that this project needs, by purpose, and how to install the missing ones. Sourced by
# deploy/quickstart.sh and tests/run.sh; works on Debian 12 and 13.

# Compiles the daemon and the simulator. catch2 and libbenchmark-dev are looked for by every configure.
packages_build=(
  cmake ninja-build g++ pkg-config python3
  libpcap-dev libhwy-dev libnuma-dev libsystemd-dev zlib1g-dev libssl-dev libcrypt-dev
  libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsimdjson-dev libtomlplusplus-dev
  libcpp-httplib-dev prometheus-cpp-dev catch2 libbenchmark-dev
)

# What deploy/package.sh calls besides.
packages_package=(dpkg-dev file binutils patchelf)

# What the tests call besides. Prometheus is not here: see unpack_package().
packages_test=(binutils curl)

# clang-format and clang-tidy of two major versions disagree about the same file, so the tree is held against one, the
# one of Debian 12. Elsewhere those two checks are skipped, and say so.
packages_lint=(clang-format-14 clang-tidy-14)

# What deploy/package.sh --arm calls instead of this machine's compiler, and install_arm64_libraries() takes from the other
# architecture.
packages_cross=(cmake ninja-build pkg-config python3 g++-aarch64-linux-gnu qemu-user dpkg-dev file binutils)

# Builds the bandwidth kernels for AArch64 and runs them (tests/run.sh --arm); the library of that processor comes by
# unpack_arm64_package().
packages_arm=(g++-aarch64-linux-gnu qemu-user)

# Opens the live page in a real browser (tests/run.sh --browser; 700 MB), and what checks it there, from npm.
packages_browser=(chromium fonts-dejavu-core npm)
npm_browser=(axe-core@4.14.1 typescript@5.9.3 @grafana/schema@13.2.3)

# package_installed NAME: for this machine's processor. A machine of two architectures has a line for each.
package_installed() {
  dpkg-query -W -f='${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null |
    grep -qxE "installed ($(dpkg --print-architecture)|all)"
}

# install_missing NAME…: installs what is not there yet. Without root it only says what is missing, and goes on: the
# build may find it elsewhere.
install_missing() {
  local name missing=()
  for name in "$@"; do
    package_installed "$name" || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "not root, so not installing: ${missing[*]}" >&2
    return 0
  fi
  apt_update_once
  echo "installing: ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}"
}

# Package lists of a fresh or an old machine name files that the mirror no longer has.
apt_update_once() {
  [ -z "${packages_lists_fresh:-}" ] || return 0
  echo "apt-get update"
  apt-get update -q
  packages_lists_fresh=1
}

# unpack_package NAME DIR: the package's files under DIR, without installing it. For Prometheus, whose package would
# start a service that listens on every address.
unpack_package() {
  local name=$1 directory=$2
  if [ "$(id -u)" -ne 0 ]; then
    echo "not root, so not fetching $name" >&2
    return 0
  fi
  apt_update_once
  mkdir -p "$directory"
  (cd "$directory" && apt-get download -q -o APT::Sandbox::User=root "$name" && dpkg -x "$name"_*.deb . && rm -f "$name"_*.deb)
}

# unpack_arm64_package NAME DIR: the same for a package of AArch64, with package lists of its own in DIR, so that this
# system does not become one of two architectures.
unpack_arm64_package() {
  local name=$1 directory=$2
  local apt=(-q -o "Dir::State=$directory/apt" -o "Dir::State::status=$directory/apt/status" -o "Dir::Cache=$directory/apt"
    -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root)
  mkdir -p "$directory/apt/lists/partial" "$directory/apt/archives/partial"
  : > "$directory/apt/status"
  (cd "$directory" && apt-get "${apt[@]}" update && apt-get "${apt[@]}" download "$name" && dpkg-deb -x "$name"_*.deb . &&
    rm -rf "$name"_*.deb apt)
}

# The libraries of packages_build for arm64, beside those of this system; headers alone are the same for both. Some cannot
# lie beside their amd64 package, which apt then removes: for a container.
install_arm64_libraries() {
  local name names=()
  dpkg --add-architecture arm64
  packages_lists_fresh=
  apt_update_once
  for name in "${packages_build[@]}"; do
    case $name in
      cmake | ninja-build | g++ | pkg-config | python3) ;;
      *) if apt-cache show "$name:arm64" >/dev/null 2>&1; then names+=("$name:arm64"); else names+=("$name"); fi ;;
    esac
  done
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q -o Dpkg::Use-Pty=0 --no-install-recommends "${names[@]}"
}

# unpack_npm DIR NAME@VERSION…: packages of npm under DIR/node_modules, their scripts not run.
unpack_npm() {
  local directory=$1
  shift
  mkdir -p "$directory"
  npm install --prefix "$directory" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error "$@"
}

# True where the packages of packages_lint exist.
lint_available() {
  [ -n "$(apt-cache policy clang-tidy-14 2>/dev/null | sed -n 's/^ *Candidate: *\([^(].*\)$/\1/p')" ]
}
