# A directory that everything of a run lives below, and carries in its environment as TMPDIR: so
# whatever a broken run leaves behind, mounts and daemons included, is known to be ours. Sourced by the
# scripts that run the tests.

# make_run_directory: makes one, sets run_directory, and cleans up at the end of the script.
make_run_directory() {
  run_directory=$(mktemp -d "${TMPDIR:-/tmp}/httpfs-run-XXXXXX")
  run_directory=$(realpath "$run_directory")
  chmod 755 "$run_directory"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

mounts_of_run() {
  awk -v prefix="$run_directory/" 'index($5, prefix) == 1 { print $5 }' /proc/self/mountinfo | tac
}

processes_of_run() {
  local entry
  for entry in /proc/[0-9]*; do
    if grep --quiet --null-data --line-regexp --fixed-strings "TMPDIR=$run_directory" \
      "$entry/environ" 2>/dev/null; then
      echo "${entry#/proc/}"
    fi
  done
}

clean_up() {
  local mountpoint process
  # Steps in the background, before what they have started.
  for process in $(jobs -p); do kill "$process" 2>/dev/null || true; done
  for mountpoint in $(mounts_of_run); do
    fusermount3 -u -z "$mountpoint" 2>/dev/null || umount -l "$mountpoint" 2>/dev/null || true
  done
  for process in $(processes_of_run); do
    kill -KILL "$process" 2>/dev/null || true
  done
  if [[ -z "$(mounts_of_run)" ]]; then
    rm -rf "$run_directory" "$run_directory".{install,steps,failed,log}
  else
    echo "${0##*/}: still mounted: $(mounts_of_run)" >&2
  fi
}
