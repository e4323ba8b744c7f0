#!/usr/bin/env bash
# Builds every C test with the whole core under the address and undefined-behaviour sanitizers, those with threads also under the
# thread sanitizer, warnings as errors, and runs it: with gcc and with clang, whichever are there, as each sees what
# the other does not; with $CC alone where that is set. Arguments choose tests: ctest.sh thrift snappy.
set -euo pipefail
cd "$(dirname "$0")/.."
# -fwrapv, which the flags of CPython have, would hide the overflow of signed integers: it stays off.
common=(-std=c11 -g -O1 -Wall -Wextra -Wshadow -Werror -fno-omit-frame-pointer -fno-wrapv
    -pthread -fno-sanitize-recover=all -I_core -I_core/c -I_core/tests)
with_threads=" buffers page_task point races "
export ASAN_OPTIONS=allocator_may_return_null=1:${ASAN_OPTIONS-} UBSAN_OPTIONS=print_stacktrace=1

sanitizes() { # sanitizes COMPILER KIND: it is there, with the libraries of the sanitizers of this kind
    command -v "$1" > /dev/null &&
        echo 'int main(void) { return 0; }' | "$1" "-fsanitize=$2" -x c - -o build/ctest/empty 2> /dev/null
}

mkdir -p build/ctest
compilers=()
for cc in ${CC:-gcc clang}; do if sanitizes "$cc" address,undefined; then compilers+=("$cc"); fi; done
[[ ${#compilers[@]} -gt 0 ]] || { echo "no compiler with sanitizers: ${CC:-gcc or clang}"; exit 1; }

export out cc jobs
jobs=$(nproc 2> /dev/null || echo 2)

one() { # one TEST: builds and runs it, and prints its output in one piece
    local name=$1 status=ok
    {
        echo "-- $name ($(basename "$out"))"
        if ! "$cc" "${@:2}" "_core/tests/$name.c" "$out/libcore.a" -lm -o "$out/$name" ||
            ! timeout 300 "$out/$name"; then
            status=failed
        fi
    } > "$out/$name.log" 2>&1
    cat "$out/$name.log"
    echo "-- $name ($(basename "$out"))" >> "build/ctest/$status"
}
export -f one

: > build/ctest/ok
: > build/ctest/failed
all() { # all KIND [TEST ...]: builds and runs tests under the sanitizers of one kind
    local kind=$1 names=() flags=("${common[@]}" "-fsanitize=$1")
    shift
    out=build/ctest/$(basename "$cc")-${kind%%,*}
    mkdir -p "$out"
    rm -f "$out"/*.o "$out"/*.a
    for source in _core/tests/test_*.c; do
        name=$(basename "$source" .c)
        if [[ $# -gt 0 && " $* " != *" ${name#test_} "* ]]; then continue; fi
        if [[ $kind == thread && $with_threads != *" ${name#test_} "* ]]; then continue; fi
        names+=("$name")
    done
    if [[ ${#names[@]} == 0 ]]; then return; fi
    # A static library, compiled once: a test links what it calls, and may include a .c to see inside.
    printf '%s\n' _core/c/*.c | xargs -P "$jobs" -I{} \
        sh -c '"$0" "$@" -c "{}" -o "'"$out"'/$(basename "{}" .c).o"' "$cc" "${flags[@]}"
    ar rcs "$out/libcore.a" "$out"/*.o
    printf '%s\n' "${names[@]}" | xargs -r -P "$jobs" -I{} bash -c 'one "$@"' sh "{}" "${flags[@]}"
}

for cc in "${compilers[@]}"; do
    all address,undefined "$@"
    if sanitizes "$cc" thread; then
        all thread "$@"
    else
        echo "$cc has no thread sanitizer: tests of threads are run without it"
    fi
done
passed=$(wc -l < build/ctest/ok)
failed=$(wc -l < build/ctest/failed)
sed 's/$/ FAILED/' build/ctest/failed
echo "C tests: $passed passed, $failed failed"
[[ $failed == 0 && $passed -gt 0 ]]
