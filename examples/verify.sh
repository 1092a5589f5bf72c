#!/usr/bin/env bash
# Check a receipt without cvm, by sections 6 and 7 of cvm/SPEC.md: bash verify.sh receipt.json model.cvm
set -euo pipefail
declare -x LC_ALL=C receipt=$1 program=$2 bad=0

# A leaf for the header, with the number of samples in their place, and one for each sample. jq rounds integers from 2^53.
jq -e 'all(.. | numbers; . < 9007199254740992)' "$receipt" >/dev/null
leaves=$(jq -acS 'del(.root, .backend) + {samples: (.samples | length)}, .samples[]' "$receipt")
while read -r leaf; do hashes+=("$(printf '\0%s' "$leaf" | sha256sum | cut -c 1-64)"); done <<<"$leaves"

# The root: neighbours are hashed together; one without a partner moves up as it is.
while [ ${#hashes[@]} -gt 1 ]; do
  set -- "${hashes[@]}" && hashes=()
  while [ $# -gt 1 ]; do hashes+=("$(xxd -r -p <<<"01$1$2" | sha256sum | cut -c 1-64)") && shift 2; done
  hashes+=("$@")
done

# The program ends where the metadata begins: with its mark at a multiple of 64, and a length that ends the file.
end=$(wc -c <"$program") && size=$end
for at in $(grep -abo $'CVMMETA\x01' "$program" | cut -d : -f 1 | tac); do
  if ((at % 64 == 0 && at + 16 + $(od -A n -t u8 -j $((at + 8)) -N 8 "$program") == size)); then end=$at; fi
done

found="format cvm-receipt-2;root ${hashes[0]};program $(head -c "$end" "$program" | sha256sum)"
if jq -e .metadata "$receipt" >/dev/null; then found+=";metadata $(tail -c "+$((end + 1))" "$program" | sha256sum)"; fi
while read -r name value _; do
  if [ "$(jq -r ".$name" "$receipt")" = "$value" ]; then remark=agrees; else remark="but is $value" bad=1; fi
  echo "$name $(jq -r ".$name" "$receipt") $remark"
done <<<"${found//;/$'\n'}" && exit "$bad"
