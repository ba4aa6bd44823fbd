#!/bin/bash
# Builds Tamis (release, g++) and runs every test. Works from nothing on Debian 12: installs what is missing.
#
#   tools/test.sh [ARGUMENTS OF ctest]      for example: tools/test.sh -R Manifest
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_deps.sh
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
CXX=${CXX:-g++} cmake --preset release -DTAMIS_BUILD_TESTS=ON -DTAMIS_BUILD_TOOLS=ON -DTAMIS_BUILD_BENCH=ON "${launcher[@]}"
cmake --build build/release
ctest --test-dir build/release --output-on-failure -j2 "$@"
