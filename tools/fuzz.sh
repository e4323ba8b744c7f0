#!/usr/bin/env bash
# Fuzzes the core: every _core/tests/fuzz_*.c with libFuzzer under sanitizers, two at a time,
# FUZZ_SECONDS each. Corpora grow in build/fuzz/NAME/corpus; seeds lie in _core/tests/seeds/NAME.
# An input that fails is kept as build/fuzz/NAME/crash-*. Arguments choose targets.
set -euo pipefail
cd "$(dirname "$0")/.."
bash tools/need.sh clang
export FUZZ_SECONDS=${FUZZ_SECONDS:-30}
lib=build/fuzz/lib
flags=(-std=c11 -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined
    -fno-sanitize-recover=all -I_core -I_core/c -I_core/tests)
rm -rf "$lib"
mkdir -p "$lib"
printf '%s\n' _core/c/*.c | xargs -P 2 -I{} \
    sh -c 'clang "$@" -fsanitize=fuzzer-no-link -c "{}" -o "'"$lib"'/$(basename "{}" .c).o"' sh "${flags[@]}"
ar rcs "$lib/libcore.a" "$lib"/*.o

fuzz() { # fuzz NAME: runs the target that was built; its log is shown whole only on failure
    local dir=build/fuzz/$1 seeds=_core/tests/seeds/$1 status=0
    mkdir -p "$dir/corpus"
    [[ -d $seeds ]] || seeds=
    "$dir/target" "$dir/corpus" $seeds -max_total_time="$FUZZ_SECONDS" -timeout=10 \
        -rss_limit_mb=2048 -max_len=65536 -use_value_profile=1 -print_final_stats=1 \
        -artifact_prefix="$dir/" > "$dir/log" 2>&1 || status=1
    if [[ $status == 0 ]]; then
        echo "-- fuzz_$1: $(awk '/number_of_executed_units/ {print $2}' "$dir/log") inputs, nothing found"
    else
        tail -n 60 "$dir/log"
        echo "-- fuzz_$1 FAILED, see $dir"
    fi
    return $status
}
export -f fuzz

names=()
for source in _core/tests/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    if [[ $# -gt 0 && " $* " != *" $name "* ]]; then continue; fi
    [[ -f $source ]] || { echo "no fuzz targets"; exit 1; }
    mkdir -p "build/fuzz/$name"
    clang "${flags[@]}" -fsanitize=fuzzer "$source" "$lib/libcore.a" -lm -o "build/fuzz/$name/target"
    names+=("$name")
done
# a failed target must not keep the others from running: xargs reports 123 at the end
printf '%s\n' "${names[@]}" | xargs -P 2 -I{} bash -c 'fuzz {}'
echo "fuzz targets: ${#names[@]} passed, 0 failed"
