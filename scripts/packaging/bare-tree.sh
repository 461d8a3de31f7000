# A bare Debian 12 in a directory, for check-deb, check-service and check-tarball, which read this file. check-oci needs
# only its small functions.
#
# Needs root, /dev/fuse, mmdebstrap or debootstrap, and Debian's packages, from where this machine has them. The
# tree is kept as .build/package/bookworm.tar and used again for a week.

release=bookworm

fail() {
  echo "package check: $*" >&2
  exit 1
}

# There is no verdict: Debian's packages are unreachable (EX_TEMPFAIL).
unavailable() {
  echo "package check: not done: $*" >&2
  exit 75
}

step() {
  echo "-- $*"
}

# take_arguments PACKAGE BIN: sets package and bin.
take_arguments() {
  (($# == 2)) || fail "usage: PACKAGE BIN"
  package=$(realpath "$1")
  bin=$(realpath "$2")
  ((EUID == 0)) || fail "only root can make a Debian tree and enter it"
  [[ -c /dev/fuse ]] || fail "no /dev/fuse (see scripts/install-deps)"
  [[ -x "$bin/Origin" ]] || fail "no Origin in $bin: swift build -c release --product Origin"
}

# Makes a new directory and sets work to it.
make_work_directory() {
  work=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/httpfs-check-XXXXXX")")
  chmod 755 "$work"
}

# Makes a new directory, sets work to it, and root and www to directories below it.
make_tree() {
  local archive mirror made
  archive=$(dirname "${BASH_SOURCE[0]}")/../../.build/package/$release.tar
  if [[ -z "$(find "$archive" -mtime -7 2>/dev/null)" ]]; then
    mkdir -p "$(dirname "$archive")"
    # The mirror of this machine's apt, or else debootstrap's default.
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $release" \
      'Component: main' 2>/dev/null | head -1 || true)
    step "making a bare Debian tree"
    if command -v mmdebstrap >/dev/null; then
      mmdebstrap --quiet --variant=minbase --format=tar "$release" "$archive.new" ${mirror:+"$mirror"} >&2 ||
        unavailable "mmdebstrap cannot make a Debian tree"
    elif command -v debootstrap >/dev/null; then
      made=$(mktemp -d "${TMPDIR:-/tmp}/httpfs-debian-XXXXXX")
      debootstrap --variant=minbase "$release" "$made" ${mirror:+"$mirror"} >&2 ||
        { rm -rf "$made"; unavailable "debootstrap cannot make a Debian tree"; }
      tar --create --one-file-system --directory "$made" --file "$archive.new" .
      rm -rf "$made"
    else
      fail "no debootstrap: install it"
    fi
    mv "$archive.new" "$archive"
  fi
  make_work_directory
  root=$work/root
  www=$work/www
  mkdir "$root"
  tar --extract --numeric-owner --file "$archive" --directory "$root" --exclude './dev/*'
}

# Adds what programs in the tree need; the caller must be in its own mount namespace.
furnish_tree() {
  local device
  mount -t proc proc "$root/proc"
  mkdir -p "$root/dev" "$root/tmp"
  chmod 1777 "$root/tmp"
  for device in null:3 zero:5 random:8 urandom:9; do
    mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
  done
  # With the mode that udev gives it.
  mknod -m 666 "$root/dev/fuse" c 10 229
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  touch "$root/etc/fstab"
  # As on every installed system: fusermount3 looks into it.
  ln -sf ../proc/self/mounts "$root/etc/mtab"
  cp "$package" "$root/tmp/"
}

# in_root COMMAND...: runs as root of the tree, without this machine's environment.
in_root() {
  timeout --kill-after=5 60 chroot "$root" \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}

# Keeps this machine's environment, since a proxy may be needed to reach Debian's packages, but not the directories
# that it names: the tree has no others than its own.
apt_in_root() {
  chroot "$root" env -u TMPDIR -u TMP -u TEMP -u HOME PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
    apt-get --quiet --quiet --yes --no-install-recommends -o APT::Update::Error-Mode=any "$@" \
    >"$work/apt.log" 2>&1 && return
  cat "$work/apt.log" >&2
  if grep --quiet --extended-regexp 'Failed to fetch|Unable to fetch' "$work/apt.log"; then
    unavailable "apt-get $1 cannot reach Debian's packages"
  fi
  fail "apt-get $1 failed"
}

# Starts an origin with a.bin and numbers.txt; sets base to its address, origin_pid to its process.
serve_files() {
  mkdir -p "$www"
  head -c 5000000 /dev/urandom >"$www/a.bin"
  seq 200000 >"$www/numbers.txt"
  "$bin/Origin" --root "$www" >"$work/origin.log" 2>&1 &
  origin_pid=$!
  within 10 grep -q '^listening on ' "$work/origin.log" || fail "the origin does not start"
  base=http://$(sed -n 's/^listening on //p' "$work/origin.log" | head -1)
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# No process of the package runs in this namespace.
is_quiet() {
  local entry
  for entry in /proc/[0-9]*; do
    [[ "$(readlink "$entry/exe" 2>/dev/null)" != */bin/httpfs* ]] || return 1
  done
}

same() {
  timeout 60 cmp "$1" "$2" || fail "$1 is not what the server has"
}
