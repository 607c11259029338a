#!/bin/sh
# Installs the Debian packages that are missing: setup.sh PURPOSE..., each one of build, demo, test, check, study, mpi.
# Says what it installs and why; works as root or through sudo.
set -u

packages() {
  case $1 in
    build) cat <<END
gcc                  the C compiler
g++                  the C++ compiler, for tinyobjloader and the gradient tests
libc6-dev            headers of the C library
pkg-config           finds LuaJIT and OpenBLAS
libluajit-5.1-dev    the language of the scripts
libopenblas-dev      matrix products
libstb-dev           reads and writes pictures
libtinyobjloader-dev reads OBJ files
libsqlite3-0         keeps what parameter studies find
zlib1g               makes the files of reports smaller
END
    ;;
    demo) echo "ffmpeg               makes the video" ;;
    test) cat <<END
lua-busted           runs the tests
lua-check            checks the Lua code
ffmpeg               makes the videos that tests look at
libnlopt0            optimizers that scripts may ask for
coinor-libipopt1v5   another one
chromium             opens the pages that reports write, without a window
END
    ;;
    check) echo "clang                a second C compiler to agree with" ;;
    study) cat <<END
slurm-wlm            a scheduler that runs a study's workers
munge                vouches for who asks it
parallel             starts workers over ssh
postgresql           a server that keeps a study for many machines
libpq5               speaks to it
END
    ;;
    mpi) cat <<END
libopenmpi-dev       spreads scenes over processes and machines
openmpi-bin          starts them
END
    ;;
    *) echo "setup: unknown purpose $1; allowed are build, demo, test, check, study, mpi" >&2; exit 2 ;;
  esac
}

wanted=$(for purpose in "$@"; do packages "$purpose" || exit 2; done) || exit 2

if ! command -v dpkg-query >/dev/null 2>&1; then
  # not Debian: the build says what it does not find
  exit 0
fi

missing=
lines=
while read -r name reason; do
  case " $missing " in *" $name "*) continue ;; esac
  status=$(dpkg-query -W -f '${Status}' "$name" 2>/dev/null)
  if [ "$status" != "install ok installed" ]; then
    missing="$missing $name"
    lines=$(printf '%s\n  %-21s %s' "$lines" "$name" "$reason")
  fi
done <<END
$wanted
END
[ -n "$missing" ] || exit 0

echo "These Debian packages are missing and will be installed:$lines"
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  as_root="sudo"
else
  echo "cqlua: this needs root or sudo, and neither is at hand; type this as root and start again:" >&2
  echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
  exit 1
fi

# shellcheck disable=SC2086
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@"; }

# lists may be empty on a fresh machine, or too old to still name what the mirror has
known() { for name in $missing; do apt-cache show "$name" >/dev/null 2>&1 || return 1; done; }
known || apt update || exit 1
# shellcheck disable=SC2086
if ! apt install -y --no-install-recommends $missing; then
  echo "cqlua: the installation failed; trying once more with new package lists"
  # shellcheck disable=SC2086
  apt update && apt install -y --no-install-recommends $missing || {
    echo "cqlua: apt-get could not install$missing; its message stands above" >&2
    exit 1
  }
fi
