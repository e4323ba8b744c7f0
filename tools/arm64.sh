#!/usr/bin/env bash
# Builds the core and every C test for 64-bit ARM, and runs them under qemu: `char` has no sign there, vectors are NEON, memory is
# ordered weakly. Arguments choose tests, as of ctest.sh: arm64.sh thrift snappy. Minutes, as each instruction is translated.
# The result goes into docs/proofs.md, dated.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-linux-gnu
cc=${CC:-$target-gcc}
root=${SYSROOT:-/usr/$target}
emulator=${QEMU:-qemu-aarch64}
flags=(-std=c11 -g -O2 -Wall -Wextra -Wshadow -Werror -pthread -I_core -I_core/c -I_core/tests
    -fsanitize=undefined -fsanitize-undefined-trap-on-error -fno-sanitize-recover=all)

for needed in "$cc" "$emulator"; do
    if ! command -v "$needed" > /dev/null; then
        echo "arm64: skipped, there is no $needed: apt-get install gcc-$target libc6-dev-arm64-cross qemu-user"
        exit 0
    fi
done
if [[ ! -e $root/lib/libc.so.6 ]]; then
    echo "arm64: skipped, $root has no C library: apt-get install libc6-dev-arm64-cross"
    exit 0
fi

export out=build/arm64 cc root emulator jobs
jobs=$(nproc 2> /dev/null || echo 2)
mkdir -p "$out"
rm -f "$out"/*.o "$out"/*.a
printf '%s\n' _core/c/*.c | xargs -P "$jobs" -I{} \
    sh -c '"$0" "$@" -c "{}" -o "'"$out"'/$(basename "{}" .c).o"' "$cc" "${flags[@]}"
"${cc%-gcc}-ar" rcs "$out/libcore.a" "$out"/*.o

one() { # one TEST: builds and runs it, and prints its output in one piece
    local name=$1 status=ok
    {
        echo "-- $name"
        if ! "$cc" "${@:2}" "_core/tests/$name.c" "$out/libcore.a" -lm -o "$out/$name" ||
            ! timeout 1200 "$emulator" -L "$root" "$out/$name"; then
            status=failed
        fi
    } > "$out/$name.log" 2>&1
    cat "$out/$name.log"
    echo "$name" >> "$out/$status"
}
export -f one

: > "$out/ok"
: > "$out/failed"
names=()
for source in _core/tests/test_*.c; do
    name=$(basename "$source" .c)
    if [[ $# -gt 0 && " $* " != *" ${name#test_} "* ]]; then continue; fi
    names+=("$name")
done
start=$SECONDS
printf '%s\n' ${names[@]+"${names[@]}"} | xargs -r -P "$jobs" -I{} bash -c 'one "$@"' sh "{}" "${flags[@]}"
sed 's/$/ FAILED/' "$out/failed"
passed=$(wc -l < "$out/ok")
failed=$(wc -l < "$out/failed")
checks=$(grep -hoE '^[0-9]+ passed' "$out"/test_*.log | awk '{ n += $1 } END { print n + 0 }')
echo "C tests on arm64: $passed passed, $failed failed; $checks checks, $((SECONDS - start)) s ($("$emulator" --version | head -1), $("$cc" -dumpfullversion))"
[[ $failed == 0 && $passed -gt 0 ]]
