#!/usr/bin/env bash
# Builds every C test with the whole core under the address and undefined-behaviour sanitizers,
# warnings as errors, and runs it. Arguments choose tests: ctest.sh thrift snappy.
set -euo pipefail
cd "$(dirname "$0")/.."
cc=${CC:-gcc}
out=build/ctest
flags=(-std=c11 -g -O1 -Wall -Wextra -Wshadow -Werror -fno-omit-frame-pointer
    -fsanitize=address,undefined -fno-sanitize-recover=all -I_core -I_core/c -I_core/tests)
mkdir -p "$out"
rm -f "$out"/*.o "$out"/*.a

# A static library, compiled once: a test links what it calls, and may include a .c to see inside.
printf '%s\n' _core/c/*.c | xargs -P "$(nproc 2> /dev/null || echo 2)" -I{} \
    sh -c '"$0" "$@" -c "{}" -o "'"$out"'/$(basename "{}" .c).o"' "$cc" "${flags[@]}"
ar rcs "$out/libcore.a" "$out"/*.o

passed=0 failed=0
export ASAN_OPTIONS=allocator_may_return_null=1:${ASAN_OPTIONS-} UBSAN_OPTIONS=print_stacktrace=1
for source in _core/tests/test_*.c; do
    name=$(basename "$source" .c)
    if [[ $# -gt 0 && " $* " != *" ${name#test_} "* ]]; then continue; fi
    echo "-- $name"
    if [[ -f $source ]] && "$cc" "${flags[@]}" "$source" "$out/libcore.a" -lm -o "$out/$name" &&
        timeout 300 "$out/$name"; then
        passed=$((passed + 1))
    else
        echo "-- $name FAILED"
        failed=$((failed + 1))
    fi
done
echo "C tests: $passed passed, $failed failed"
[[ $failed == 0 && $passed -gt 0 ]]
