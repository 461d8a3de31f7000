# For bash. What the examples share: a directory of their own, a server on loopback, a mount, and their end.
# Sourced, not run. Each example calls `begin`, puts files into $work/www, calls `mount_files`, and
# reads $mnt; whatever happens, nothing is left behind.
set -euo pipefail

name=$(basename "$0")
bin=${HTTPFS_BIN_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.build/release}
server_pid='' mount_pid=''

fail() {
  echo "$name: $*" >&2
  exit 1
}

# need PROGRAM PACKAGE
need() {
  command -v "$1" >/dev/null || fail "there is no $1; install it with: sudo apt-get install $2"
}

# What an example mounts itself is unmounted here first.
before_end() { :; }

clean_up() {
  local status=$?
  before_end || true
  if [[ -n "$mount_pid" ]]; then
    # The foreground process unmounts when it is asked to end.
    kill "$mount_pid" 2>/dev/null || true
    wait "$mount_pid" 2>/dev/null || true
  fi
  if [[ -n "$server_pid" ]]; then
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$work"
  exit "$status"
}

begin() {
  for program in httpfs Origin; do
    [[ -x "$bin/$program" ]] || fail "$bin/$program is not built; run: swift build -c release"
  done
  work=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/httpfs-example-XXXXXX")")
  mnt=$work/mnt
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir "$work/www" "$mnt"
}

# wait_for FILE PATTERN: until a line of FILE matches; 20 s at most.
wait_for() {
  local _
  for _ in $(seq 400); do
    grep --max-count=1 "$2" "$1" 2>/dev/null && return
    sleep 0.05
  done
  fail "no '$2': $(cat "$1")"
}

# Serves $work/www and mounts all files in it, as they would be mounted from anywhere.
mount_files() {
  "$bin/Origin" --root "$work/www" >"$work/server.out" 2>&1 &
  server_pid=$!
  local address
  address=$(wait_for "$work/server.out" '^listening on ')
  (cd "$work/www" && printf "http://${address#listening on }/files/%s\n" *) >"$work/urls.txt"
  "$bin/httpfs" mount --cache-dir "$work/cache" "$work/urls.txt" "$mnt" >"$work/mount.out" 2>&1 &
  mount_pid=$!
  wait_for "$work/mount.out" '^mounted ' >/dev/null
}

# Shows a command and runs it.
show() {
  echo "\$ ${*//"$work/"/}"
  "$@"
}

# at_most PERCENT: how much of all files has been fetched, from .status.json; fails where it is more.
at_most() {
  python3 - "$mnt/.status.json" "$1" <<'PYTHON'
import json
import sys

with open(sys.argv[1]) as file:
    totals = json.load(file)["totals"]
share = 100 * totals["fetched_bytes"] / totals["length"]
print(
    f"fetched {totals['fetched_bytes'] / 2**20:.2f} of {totals['length'] / 2**20:.2f} MiB"
    f" ({share:.1f} %), in {totals['requests']} requests"
)
sys.exit(share > float(sys.argv[2]))
PYTHON
}
