#!/bin/sh
# The kernels on AArch64: built with Debian's cross compiler, run under qemu's user emulation against the scalar
# reference, once with Advanced SIMD only and once for every SVE length, and looked through for their wide loads.
#
#   arm64_kernels.sh SOURCE_DIR BUILD_DIR PYTHON
#
# Needs g++-aarch64-linux-gnu, qemu-user and libhwy1:arm64 (tests/run.sh --arm installs them); 77 (skipped) without.
# ROOFLINED_ARM64_LIBS names another folder for the library.
set -eu
source_dir=$1 build_dir=$2/arm64_kernels python=$3
libs=${ROOFLINED_ARM64_LIBS:-/usr/lib/aarch64-linux-gnu}
for tool in aarch64-linux-gnu-g++ aarch64-linux-gnu-objdump qemu-aarch64; do
  command -v "$tool" > /dev/null || { echo "skipped: no $tool"; exit 77; }
done
[ -e "$libs/libhwy.so.1" ] || { echo "skipped: no libhwy1:arm64 in $libs"; exit 77; }

# Highway's and Catch's headers are the same on every processor; a folder of links keeps the host's own headers out.
mkdir -p "$build_dir/include"
for headers in hwy catch2; do ln -sfn "/usr/include/$headers" "$build_dir/include/$headers"; done
build() {  # object, source
  if [ ! -e "$1" ] || [ -n "$(find "$2" "$source_dir/collectors/ceiling/kernels.h" -newer "$1")" ]; then
    aarch64-linux-gnu-g++ -std=c++20 -O2 -DHWY_SHARED_DEFINE -I "$source_dir" -isystem "$build_dir/include" -c -o "$1" "$2"
  fi
}
build "$build_dir/loops.o" "$source_dir/collectors/ceiling/kernel_loops.cc"
build "$build_dir/test.o" "$source_dir/tests/collectors/ceiling/kernels_test.cc"
build "$build_dir/main.o" "$source_dir/tests/support/catch_main.cc"
aarch64-linux-gnu-g++ -o "$build_dir/kernels_test" "$build_dir"/loops.o "$build_dir"/test.o "$build_dir"/main.o \
  "$libs/libhwy.so.1"

status=0
for cpu in cortex-a72 max,sve128=on,sve256=off max,sve256=on,sve512=off max,sve512=on; do
  echo "qemu -cpu $cpu"
  qemu-aarch64 -cpu "$cpu" -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="/usr/aarch64-linux-gnu/lib:$libs" \
    "$build_dir/kernels_test" || status=1
done
"$python" "$source_dir/tests/collectors/ceiling/wide_loads.py" aarch64-linux-gnu-objdump "$build_dir/kernels_test" ||
  status=1
exit $status
