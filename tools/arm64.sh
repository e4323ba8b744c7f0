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

export out=build/arm64 target cc root emulator jobs libraries
jobs=$(nproc 2> /dev/null || echo 2)
mkdir -p "$out"

# The codecs are bound at run time. Debian's packages are unpacked beside the build: nothing is installed.
libraries=$PWD/$out/libraries
fetched() { # fetched PACKAGE ...
    local apt=$PWD/$out/apt options
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt/state"
        -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
    (cd "$apt" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$@") || return 1
    for package in "$apt"/*.deb; do dpkg-deb -x "$package" "$libraries" || return 1; done
}
if [[ ! -d $libraries ]] && ! { command -v dpkg-deb && fetched zlib1g libbrotli1 libzstd1; } > /dev/null; then
    echo "arm64: codecs of this system are left out: apt-get had no zlib1g, libbrotli1, libzstd1 for arm64"
fi
rm -f "$out"/*.o "$out"/*.a
printf '%s\n' _core/c/*.c | xargs -P "$jobs" -I{} \
    sh -c '"$0" "$@" -c "{}" -o "'"$out"'/$(basename "{}" .c).o"' "$cc" "${flags[@]}"
"${cc%-gcc}-ar" rcs "$out/libcore.a" "$out"/*.o

one() { # one TEST: builds and runs it, and prints its output in one piece
    local name=$1 status=ok
    {
        echo "-- $name"
        if ! "$cc" "${@:2}" "_core/tests/$name.c" "$out/libcore.a" -lm -o "$out/$name" ||
            ! timeout 1200 "$emulator" -L "$root" -E LD_LIBRARY_PATH="$libraries/lib/$target:$libraries/usr/lib/$target" \
                "$out/$name"; then
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
