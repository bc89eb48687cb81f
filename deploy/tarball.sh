#!/usr/bin/env bash
# From a finished build of the preset `package` to rooflined-VERSION-linux-ARCH.tar.gz beside the Debian package:
#
#   deploy/tarball.sh BUILD_DIR      (deploy/package.sh --tarball calls it)
#
# The programs run wherever the C library is at least as new as the one here: every other library lies beside them, in
# lib/rooflined, and is found from the place of the program, so that the folder can be put anywhere.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "$1" && pwd)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=rooflined-$version-linux-$(uname -m)
work=$build/tarball
stage=$work/$name
rm -rf "$work"
mkdir -p "$stage"

# The prefix is written into the unit; setup.sh puts the true one there.
DESTDIR=$work/root cmake --install "$build" --prefix /PREFIX --strip >"$work/log"
mv "$work/root/PREFIX"/* "$stage"
mv "$work/root/etc" "$stage/etc"
install -m 755 "$root/deploy/tarball/setup.sh" "$stage/setup.sh"
install -m 644 "$root/LICENSE" "$stage/LICENSE"

# Part of the C library: the loader of the system must fit them, so they are the system's.
is_system_library() {
  case $1 in
    ld-linux* | libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.*) return 0 ;;
    *) return 1 ;;
  esac
}

# Carries the library at this path with the copyright notice of its package, whose version goes into the list.
carry() {
  local path=$1 package
  install -m 644 "$(readlink -f "$path")" "$stage/lib/rooflined/$(basename "$path")"
  # dpkg may know the file under / or under /usr, whichever the package was built with.
  package=$(dpkg-query -S "$path" 2>/dev/null || dpkg-query -S "$(readlink -f "$path")" 2>/dev/null ||
    dpkg-query -S "/usr$path" 2>/dev/null || dpkg-query -S "${path#/usr}")
  package=${package%%:*}
  printf '%-30s %-24s %s\n' "$(basename "$path")" "$package" \
    "$(dpkg-query -W -f='${Version}\n' "$package" | head -n 1)" >>"$stage/lib/rooflined/LIBRARIES"
  install -D -m 644 "/usr/share/doc/$package/copyright" "$stage/share/doc/rooflined/libraries/$package"
}

mkdir -p "$stage/lib/rooflined"
ldd "$stage/bin/rooflined" "$stage/bin/rooflined-sim" | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort -u >"$work/needed"
while read -r path; do
  is_system_library "$(basename "$path")" || carry "$path"
done <"$work/needed"

# DT_RPATH and not DT_RUNPATH: it holds for the libraries that these libraries need, too.
patchelf --force-rpath --set-rpath '$ORIGIN/../lib/rooflined' "$stage/bin/rooflined" "$stage/bin/rooflined-sim"
ldd "$stage/bin/rooflined" "$stage/bin/rooflined-sim" | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort -u >"$work/found"
while read -r path; do
  case $path in "$stage"/*) continue ;; esac
  is_system_library "$(basename "$path")" || { echo "tarball.sh: $path would come from the system" >&2; exit 1; }
done <"$work/found"
glibc=$(objdump -T "$stage"/bin/* "$stage"/lib/rooflined/*.so* |
  sed -n 's/.*(\{0,1\}GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -uV | tail -n 1)

mkdir -p "$build/packages"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$build/packages/$name.tar.gz" "$name"
echo "$build/packages/$name.tar.gz: runs where the C library is glibc $glibc or newer"
