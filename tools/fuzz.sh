#!/usr/bin/env bash
# Fuzzes the core: every _core/tests/fuzz_*.c with libFuzzer under sanitizers, two at a time,
# FUZZ_SECONDS each. Corpora grow in build/fuzz/NAME/corpus; seeds lie in _core/tests/seeds/NAME.
# An input that fails is kept as build/fuzz/NAME/crash-*, and why is said last. Arguments choose targets.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/need.sh clang
export FUZZ_SECONDS=${FUZZ_SECONDS:-30} UBSAN_OPTIONS=print_stacktrace=1
lib=build/fuzz/lib
flags=(-std=c11 -g -O1 -pthread -fno-omit-frame-pointer -fsanitize=address,undefined
    -fno-sanitize-recover=all -I_core -I_core/c -I_core/tests)
rm -rf "$lib"
mkdir -p "$lib"
printf '%s\n' _core/c/*.c | xargs -P 2 -I{} \
    sh -c 'clang "$@" -fsanitize=fuzzer-no-link -c "{}" -o "'"$lib"'/$(basename "{}" .c).o"' sh "${flags[@]}"
ar rcs "$lib/libcore.a" "$lib"/*.o

fuzz() { # fuzz NAME: runs the target that was built, and says what came of it
    local dir=build/fuzz/$1 seeds=_core/tests/seeds/$1 status
    mkdir -p "$dir/corpus"
    [[ -d $seeds ]] || seeds=
    for _ in 1 2 3; do
        status=0
        "$dir/target" "$dir/corpus" $seeds -max_total_time="$FUZZ_SECONDS" -timeout=10 \
            -rss_limit_mb=2048 -max_len=65536 -use_value_profile=1 -print_final_stats=1 \
            -artifact_prefix="$dir/" > "$dir/log" 2>&1 || status=$?
        [[ $status == 70 ]] || break
        # libFuzzer goes by the clock on the wall: to it, a machine that stood still is a slow input
        "$dir/target" -timeout=10 "$(ls -t "$dir"/timeout-* | head -n 1)" > "$dir/alone" 2>&1 || break
        echo "-- fuzz_$1: an input that timed out takes $(awk '/Executed/ {print $(NF - 1)}' "$dir/alone") ms by itself; once more"
    done
    echo "$status" > "$dir/status"
    if [[ $status == 0 ]]; then
        echo "-- fuzz_$1: $(awk '/number_of_executed_units/ {print $2}' "$dir/log") inputs, nothing found"
    else
        echo "-- fuzz_$1 FAILED (exit $status)"
    fi
}

report() { # report NAME LINES: why the target failed, in so many lines; the rest is in its log
    local dir=build/fuzz/$1 status input
    status=$(cat "$dir/status" 2> /dev/null || echo none)
    echo "-- fuzz_$1 FAILED, exit $status (70: timeout, 71: memory, above 128: a signal)"
    grep -E '^(INFO: Seed|#[0-9]+\s)' "$dir/log" | sed -n '1p; 2,$ { $p; }' | cut -c 1-150
    # from the first word of the failure on: stack, summary, input; no shadow bytes, no statistics
    sed -n '/ERROR: \|runtime error:\|ALARM:\|^==[0-9]*==/,$p' "$dir/log" |
        grep -v -E '^ *(=>)?0x[0-9a-f]+[,: ]|^  [A-Z][A-Za-z -]+: +[0-9a-f]+|^(MS|Shadow|NOTE|artifact|stat|#+|\\|$)|# Uses:| in (fuzzer::|main |_start|__libc_start)' |
        cut -c 1-200 | head -n "$2"
    [[ $status == 1 || $status == 7? ]] || tail -n 3 "$dir/log" | cut -c 1-200
    for input in "$dir"/{crash,leak,oom,timeout}-*; do
        if [[ -f $input && $input -nt $dir/target ]]; then
            echo "again: $dir/target $input   ($(wc -c < "$input") bytes)"
        fi
    done
}
export -f fuzz

names=()
for source in _core/tests/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    if [[ $# -gt 0 && " $* " != *" $name "* ]]; then continue; fi
    [[ -f $source ]] || { echo "no fuzz targets"; exit 1; }
    mkdir -p "build/fuzz/$name"
    names+=("$name")
done
printf '%s\n' "${names[@]}" | xargs -P 2 -I{} \
    sh -c 'clang "$@" -fsanitize=fuzzer "_core/tests/fuzz_{}.c" "'"$lib"'/libcore.a" -lm -o "build/fuzz/{}/target"' sh "${flags[@]}"
rm -f build/fuzz/*/status # of an earlier run; without one, a target has not run to its end
printf '%s\n' "${names[@]}" | xargs -P 2 -I{} bash -c 'fuzz {}' || true
failed=()
for name in "${names[@]}"; do
    if ! grep -q '^0$' "build/fuzz/$name/status" 2> /dev/null; then failed+=("$name"); fi
done
# the reasons come last, where a log is read first
for name in ${failed[@]+"${failed[@]}"}; do report "$name" $((24 / ${#failed[@]})); done
if [[ ${#failed[@]} -gt 0 ]]; then # what a machine in trouble would show
    uptime
    if [[ -r /proc/meminfo ]]; then grep -E '^Mem(Total|Available)' /proc/meminfo; fi
    df -P build | tail -n 1
fi
echo "fuzz targets: $((${#names[@]} - ${#failed[@]})) passed, ${#failed[@]} failed"
[[ ${#failed[@]} == 0 ]]
