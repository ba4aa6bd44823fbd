#!/bin/bash
# The long forms of the tests, too long for every run: kill -9 500 times, 1,000 read-only opens beside a writer, filters of every kind at 20
# and 24 bits per key, ribbon and binary fuse at 1, .1 and .01 %, 10^8 keys of which none may be lost, reads for nothing on real trees against
# the allocator's figures. Builds a release in build/release and prints each result; the exit code is 1 if one failed.
#
#   tools/once.sh
set -uo pipefail
cd "$(dirname "$0")/.."

tools/install_deps.sh || exit 1
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
CXX=${CXX:-g++} cmake --preset release -DTAMIS_BUILD_TESTS=ON "${launcher[@]}" || exit 1
cmake --build build/release --target random_test filter_test level_rates || exit 1

output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
summary=()
failed=0

# part NAME FILTER VARIABLE=VALUE BINARY: runs the tests that the filter names and notes the line that they end with.
part() {
  local name=$1 filter=$2 variable=$3 binary=$4 begin=$SECONDS result=ok
  echo "=== $name ($variable)"
  env "$variable" "build/release/tests/$binary" --gtest_filter="$filter" 2>&1 </dev/null | tee "$output/part" || result=FAILED
  # A filter that matches nothing passes too.
  grep -q '^\[  PASSED  \] [1-9]' "$output/part" || result=FAILED
  if grep -q '^\[  SKIPPED \]' "$output/part"; then result=FAILED; fi
  [[ $result == ok ]] || failed=1
  summary+=("$(printf '%-44s %5d s   %s' "$name" $((SECONDS - begin)) "$result")")
}

# program NAME COMMAND...: runs a program whose exit code says whether its bars were met.
program() {
  local name=$1 begin=$SECONDS result=ok
  shift
  echo "=== $name ($*)"
  "$@" </dev/null || result=FAILED
  [[ $result == ok ]] || failed=1
  summary+=("$(printf '%-44s %5d s   %s' "$name" $((SECONDS - begin)) "$result")")
}

part "kill -9, 500 rounds" 'KillTest.*' TAMIS_KILL_ROUNDS=500 random_test
part "1,000 read-only opens beside a writer" 'ReadOnlyTest.*' TAMIS_READ_ONLY_OPENS=1000 random_test
part "blocked filters at 20 and 24 bits per key" 'BlockedBloomLarge.RareRates*' TAMIS_ONCE=1 filter_test
part "other filters at 20 and 24 bits per key" 'FilterKindsLarge.RareRates*' TAMIS_ONCE=1 filter_test
part "ribbon and binary fuse at 1, .1 and .01 %" 'FilterKindsLarge.RatesOfOnePercent*' TAMIS_ONCE=1 filter_test
part "no key of 10^8 lost" 'BlockedBloomLarge.NoneOf100MillionKeys*' TAMIS_ONCE=1 filter_test
program "reads for nothing, four and five levels" build/release/bench/level_rates
program "filters of 20 M keys in order" build/release/bench/level_rates --fillseq=20000000

echo
printf '%s\n' "${summary[@]}"
exit $failed
