#!/usr/bin/env bash
# Check a receipt without cvm: bash verify.sh receipt.json model.cvm. It needs jq, xxd and sha256sum.
# Section 7 of cvm/SPEC.md has the rules. Exit code 0 if all agrees, else 1.
set -euo pipefail
export LC_ALL=C
receipt=$1 program=$2 bad=0

sha() { sha256sum | cut -c 1-64; }
check() { if [ "$2" = "$3" ]; then echo "$1 $2 agrees"; else echo "$1 $2 but is $3"; bad=1; fi; }

# Neighbours are hashed together; one without a partner moves up as it is.
merkle_root() {
  local above=() pair
  while [ $# -gt 1 ]; do pair=01$1$2 && shift 2 && above+=("$(xxd -r -p <<<"$pair" | sha)"); done
  above+=("$@")
  if [ ${#above[@]} -gt 1 ]; then merkle_root "${above[@]}"; else echo "${above[0]}"; fi
}

# Where the metadata begins: its mark at a multiple of 64, and a length that ends the file.
end_of_program() {
  local size at length
  size=$(wc -c <"$program")
  for at in $(grep -abo $'CVMMETA\x01' "$program" | cut -d : -f 1); do
    length=$(od -A n -t u8 -j $((at + 8)) -N 8 "$program")
    if ((at % 64 == 0 && at + 16 + length == size)); then echo "$at" && return; fi
  done
  echo "$((size))"
}

stated() { jq -r "$1" "$receipt"; }
jq -e 'all(.. | numbers; . < 9007199254740992)' "$receipt" >/dev/null # jq's exact integers end there
mapfile -t leaves < <(jq -acS 'del(.root) + {samples: (.samples | length)}, .samples[]' "$receipt")
hashes=()
for leaf in "${leaves[@]}"; do hashes+=("$(printf '\0%s' "$leaf" | sha)"); done
end=$(end_of_program)
check format "$(stated .format)" cvm-receipt-2
check root "$(stated .root)" "$(merkle_root "${hashes[@]}")"
check program "$(stated .program)" "$(head -c "$end" "$program" | sha)"
if [ "$(stated 'has("metadata")')" = true ]; then
  check metadata "$(stated .metadata)" "$(tail -c "+$((end + 1))" "$program" | sha)"
fi
exit "$bad"
