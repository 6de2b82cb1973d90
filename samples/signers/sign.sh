#!/usr/bin/env bash
# Prints a signed path: sign.sh KEYID EXPIRY|- variant RECIPE SOURCE | original SOURCE | info SOURCE
# The key comes in hexadecimal digits from the environment variable KEY. openssl takes it as an argument, which other
# users of this machine can see while it runs; use another language where that matters.
set -euo pipefail
export LC_ALL=C

encoded() {
    local text=$1 character index
    for ((index = 0; index < ${#text}; index++)); do
        character=${text:index:1}
        case $character in
            [A-Za-z0-9._~:,=@-]) printf %s "$character" ;;
            *) printf '%%%02X' $(($(printf %d "'$character") & 255)) ;;
        esac
    done
}

id=$1 expiry=$2 route=$3
shift 3
rest=
for segment in "$@"; do rest+=/$(encoded "$segment"); done
[ "$expiry" = - ] || rest+="?exp=$expiry"
code=$(printf %s "/$route$rest" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" -binary | base64 -w0)
code=$(printf %s "$code" | tr '+/' '-_' | tr -d '=')
printf '%s\n' "/$route/$id.$code$rest"
