#!/bin/bash
# Builds a release of Tamis and runs the main job on real data: what filters save on the file lists of this machine's packages.
# Works from nothing on Debian 12: installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_deps.sh
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
CXX=${CXX:-g++} cmake --preset release "${launcher[@]}"
cmake --build build/release --target tamis_demo
exec build/release/tools/tamis_demo "$@"
