#!/bin/bash
# Installs the Debian packages that Tamis is built from, those that are missing.
#
#   tools/install_deps.sh [--ci] [--peers]
#
# --ci: also clang and what its sanitizers need.  --peers: also the stores that bench/peers compares with.
# Root rights (sudo) are asked for only if something is missing.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libabsl-dev libxxhash-dev liblz4-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  libcli11-dev nlohmann-json3-dev
)
for argument in "$@"; do
  case "$argument" in
    --ci) packages+=(clang llvm libclang-rt-14-dev) ;;
    --peers) packages+=(librocksdb-dev libleveldb-dev liblmdb-dev libsnappy-dev) ;;
    *)
      echo "usage: $0 [--ci] [--peers]" >&2
      exit 2
      ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

echo "installing: ${missing[*]}"
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "$0: not root and no sudo; as root run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
"${apt[@]}" update -q </dev/null
"${apt[@]}" install -y -q --no-install-recommends "${missing[@]}" </dev/null
