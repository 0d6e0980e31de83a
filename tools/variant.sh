#!/usr/bin/env bash
# Build cupola in build/NAME with options of meson, and make an environment build/NAME/venv that has the packages of another one, but
# cupola from this build. Only what has changed is built again.
#
#   tools/variant.sh NAME [meson options ...]
#
# PYTHON names the other environment's interpreter, which needs meson, ninja and cython, too (`make dev`).
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1 build=$PWD/build/$1
shift
python=${PYTHON:-$PWD/.venv/bin/python}
[[ $python == */* ]] && PATH=$(dirname "$python"):$PATH
site=$build/venv/lib/$("$python" -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}")')/site-packages

# Options that were changed make a new build.
if [[ ! -f $build/build.ninja || $(cat "$build/options" 2>/dev/null) != "$*" ]]; then
    rm -rf "$build"
    CYTHON=${CYTHON:-$(command -v cython)} meson setup "$build" "$@" -Dpython.purelibdir="$site" -Dpython.platlibdir="$site" >/dev/null
    # The C that Cython makes is the same in each build. It comes from another one with ninja's notes on what it was made of, by
    # which ninja makes again what is too old, or was made by another command: all of them name Cython by its path.
    for other in build/*/.ninja_log; do
        [[ -f $other ]] || continue
        (cd "${other%/*}" && find . \( -name '*.pyx.c' -o -name '*.pyx.c.dep' -o -name _cython.c \) -exec cp -p --parents -t "$build" {} +)
        cp -p "$other" "$build/"
        break
    done
    echo "$*" >"$build/options"
fi
echo "== building build/$name"
ninja -C "$build" --quiet -j "${JOBS:-$(nproc)}"
[[ -x $build/venv/bin/python ]] || "$python" -m venv --without-pip "$build/venv"
# In front of what else .pth files add: cupola may be installed there for development.
"$python" -c 'import sys; print(*(path for path in sys.path[1:] if "-packages" in path), sep="\n")' >"$site/others.pth"
rm -rf "$site/cupola" # or what was moved in the source would stay
meson install -C "$build" --no-rebuild --quiet
