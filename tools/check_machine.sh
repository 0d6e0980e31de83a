#!/bin/sh
# Say in one line what this machine lacks for building cupola; silent when nothing is missing.
# usage: check_machine.sh PYTHON

python=${1:-python3}

lacking() {
    echo "cupola: $1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    lacking "no $python on this machine: install Python 3.11 or later, or name one: make PYTHON=/path/to/python3.12"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    lacking "$("$python" --version) is too old: Python 3.11 or later is needed; name one: make PYTHON=python3.12"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    lacking "$python has no venv module: install it (Debian and Ubuntu: apt install python3-venv)"
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.isfile(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
    lacking "$python has no C headers: install them (Debian and Ubuntu: apt install python3-dev)"
compiler=${CC:-cc}
command -v "${compiler%% *}" >/dev/null 2>&1 ||
    lacking "no C compiler ($compiler): install one (Debian and Ubuntu: apt install gcc), or name one: CC=clang make"
case $(uname -s) in
Linux) ;;
*) lacking "this is $(uname -s); cupola runs on Linux so far" ;;
esac
