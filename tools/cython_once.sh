#!/usr/bin/env bash
# Cython for several builds, each in a folder of its own: what was made of a module is taken again by the next build.
#
#   CYTHON=$PWD/tools/cython_once.sh meson setup ...
#
# build/cython has the C under a hash of all that Cython makes it of: its version and options, the module, and every .pxd and .pxi file below src.
# Beside it are the names of those that the module uses, for ninja.
set -euo pipefail

# meson ends with SOURCE -o OUTPUT. All else, such as the question for the version, is for Cython.
[[ $# -gt 3 && ${*: -2:1} == -o ]] || exec cython "$@"
source=$(realpath "${*: -3:1}") output=${*: -1} kept=$(dirname "$(realpath "$0")")/../build/cython
root=${source%/src/cupola/*}
[[ $root != "$source" ]] || exec cython "$@" # of another project, such as an example
name=$({
    cython --version 2>&1
    echo "${@:1:$#-3}" "${source#"$root"}"
    cd "$root"
    find src -name '*.px[di]' -print0 | sort -z | xargs -0 sha256sum "$source" | cut -d ' ' -f 1,3
} | sed "s,$root,," | sha256sum)
kept=$kept/${name%% *}

if [[ ! -f $kept.c ]]; then
    cython "$@"
    mkdir -p "$(dirname "$kept")"
    own=$(mktemp "$kept.XXXXXX") # of this process, until it is whole
    sed -e 's,^.*: *\\$,,' -e 's,\\$,,' "$output.dep" | xargs realpath --relative-base="$root" | grep '^src/' >"$own"
    mv "$own" "$kept.files"
    cp "$output" "$own"
    mv "$own" "$kept.c"
else
    cp "$kept.c" "$output"
    { echo "$output: \\"; sed -e "s,.*,  $root/& \\\\," "$kept.files"; echo; } >"$output.dep"
fi
