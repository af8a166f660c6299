#!/usr/bin/env bash
# Opens reports in Chromium: run.sh RAILBREAK BROWSER_PAGES FOLDER. FOLDER gets the libraries, the pages and pictures of
# them. Exits with 77, and says why, where there is no browser or the libraries cannot be had.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
railbreak=$1 make_pages=$2 folder=$3

skip() {
    printf '%s\n' "$*"
    exit 77
}

RAILBREAK_CHROMIUM=$(command -v chromium) || skip "there is no chromium here; ./dev setup browser installs it"
command -v node >/dev/null && command -v npm >/dev/null || skip "there is no node or npm here"
mkdir -p "$folder/pages"
cp "$here/package.json" "$here/package-lock.json" "$folder"
if ! cmp -s "$folder/package-lock.json" "$folder/.installed"; then
    (cd "$folder" && timeout 120 npm ci --no-audit --no-fund --ignore-scripts) ||
        skip "npm could not fetch the libraries that drive the browser"
    cp "$folder/package-lock.json" "$folder/.installed"
fi

"$make_pages" "$folder/pages"
database=$folder/run.db
rm -f "$database" "$database"-*
"$railbreak" run --db "$database" "$here/browser.yaml" >/dev/null || [ $? -le 2 ] # times may miss on a busy machine
rm -f "$folder"/pages/*-browser-*.html
"$railbreak" report latest --db "$database" --format html -o "$folder/pages" >/dev/null
mv "$folder"/pages/*-browser-*.html "$folder/pages/run.html"

export RAILBREAK_CHROMIUM RAILBREAK_BROWSER_FOLDER=$folder
node --test "$here"/*_test.mjs
