#!/bin/sh
# usage: promtool.sh FILE...
# What promtool says about metrics; exit status 77 (skipped) where it is not installed.
set -eu
command -v promtool >/dev/null || {
    echo "promtool is not installed (Debian's package prometheus, which also starts a server)"
    exit 77
}
for file in "$@"; do
    echo "$file"
    promtool check metrics <"$file"
done
