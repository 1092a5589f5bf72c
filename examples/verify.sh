#!/usr/bin/env bash
# Check a receipt without cvm, by sections 6 and 7 of cvm/SPEC.md: bash verify.sh receipt.json model.cvm
set -euo pipefail
export LC_ALL=C
receipt=$1 program=$2 hashes=() bad=0
sha() { sha256sum | cut -c 1-64; }

# A leaf for the header, with the number of samples in their place, and one for each sample. jq rounds integers from 2^53.
jq -e 'all(.. | numbers; . < 9007199254740992)' "$receipt" >/dev/null
leaves=$(jq -acS 'del(.root, .backend) + {samples: (.samples | length)}, .samples[]' "$receipt")
while read -r leaf; do hashes+=("$(printf '\0%s' "$leaf" | sha)"); done <<<"$leaves"

# The root: neighbours are hashed together; one without a partner moves up as it is.
while [ ${#hashes[@]} -gt 1 ]; do
  set -- "${hashes[@]}" && hashes=()
  while [ $# -gt 1 ]; do hashes+=("$(xxd -r -p <<<"01$1$2" | sha)") && shift 2; done
  hashes+=("$@")
done

# The program ends where the metadata begins: with its mark at a multiple of 64, and a length that ends the file.
size=$(wc -c <"$program")
end=$((size))
for at in $(grep -abo $'CVMMETA\x01' "$program" | cut -d : -f 1 | tac); do
  length=$(od -A n -t u8 -j $((at + 8)) -N 8 "$program")
  if ((at % 64 == 0 && at + 16 + length == size)); then end=$at; fi
done

compare() {
  stated=$(jq -r ".$1" "$receipt")
  if [ "$stated" = "$2" ]; then echo "$1 $stated agrees"; else echo "$1 $stated but is $2" && bad=1; fi
}
compare format cvm-receipt-2
compare root "${hashes[0]}"
compare program "$(head -c "$end" "$program" | sha)"
if jq -e 'has("metadata")' "$receipt" >/dev/null; then compare metadata "$(tail -c "+$((end + 1))" "$program" | sha)"; fi
exit "$bad"
