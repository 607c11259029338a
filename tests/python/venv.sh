# venv: options of a script that uses packages of PyPI, and a virtual environment for them: . tests/python/venv.sh
#   -b build [-f FOLDER]     FOLDER is build/NAME unless given, and stays for the next time
# Needs python3 with venv, and the network at the first time. After it $build, $folder and $python are set.

# venv NAME "IMPORTS" "PACKAGES" OPTIONS...: where python cannot import the modules, a new environment with the packages
venv() {
  name=$1 modules=$2 packages=$3
  shift 3
  build=build folder=
  while getopts b:f: option; do
    case $option in
      b) build=$OPTARG ;;
      f) folder=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  folder=${folder:-$build/$name}
  mkdir -p "$folder"
  python=$folder/venv/bin/python
  "$python" -c "import $modules" 2>/dev/null && return
  echo "installing $packages into $folder/venv"
  python3 -m venv --clear "$folder/venv" || {
    echo "run.sh: python3 has no venv; on Debian: apt-get install python3-venv" >&2
    exit 1
  }
  pip="$python -m pip install --quiet --disable-pip-version-check"
  case " $packages " in
    # PyTorch without CUDA, where its own index is reached, else with it (3 GB)
    *" stable-baselines3 "*) $pip --retries 0 --timeout 20 --index-url https://download.pytorch.org/whl/cpu torch \
      >"$folder/pip.log" 2>&1 || true ;;
  esac
  $pip $packages >"$folder/pip.log" 2>&1 || {
    cat "$folder/pip.log" >&2
    exit 1
  }
}
