#!/usr/bin/env bash
# need.sh WHAT ...: makes sure that the named things are on this machine. What is missing is
# installed where that is possible (root, apt-get); else the remedy is printed, and the exit is 1.
# WHAT: cc, venv (and headers, for the Python in $PYTHON), clang (with libFuzzer), java, jdk.
set -uo pipefail
python=${PYTHON:-python3}
status=0

installed() { # installed PACKAGE ...: tries to install; 1 where this machine does not let us
    [[ $(id -u) == 0 ]] && command -v apt-get > /dev/null || return 1
    export DEBIAN_FRONTEND=noninteractive
    echo "need: installing $*"
    if [[ ! -e ${updated:=$(mktemp -u)} ]]; then apt-get -qq update && touch "$updated"; fi
    apt-get -qq install --no-install-recommends "$@" > /dev/null
}

missing() {
    echo "need: $1" >&2
    status=1
}

has_cc() { # a compiler alone is not enough: it needs the headers of the C library
    printf '#include <stdlib.h>\nint main(void) { return 0; }\n' |
        "${CC:-cc}" -x c -fsyntax-only - 2> /dev/null
}
has_headers() {
    "$python" -c 'import os, sys, sysconfig as s
sys.exit(not os.path.exists(os.path.join(s.get_path("include"), "Python.h")))'
}
has_venv() { "$python" -c 'import ensurepip, venv' 2> /dev/null; }
has_jdk() { # other releases compile to other bytes
    [[ $(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p') == 17 ]]
}
has_java() { # Spark 4 needs 17; versions before 9 call themselves 1.x
    local major
    major=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [[ ${major:-0} -ge 17 ]]
}
has_fuzzer() {
    local dir result
    dir=$(mktemp -d)
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' > "$dir/f.c"
    clang -fsanitize=fuzzer,address,undefined "$dir/f.c" -o "$dir/f" 2> /dev/null
    result=$?
    rm -rf "$dir"
    return $result
}
clang_major() { clang -dumpversion | cut -d. -f1; }

for what in "$@"; do
    case $what in
    cc)
        has_cc || installed gcc libc6-dev
        has_cc || missing "no C compiler: apt-get install gcc, or xcode-select --install on macOS"
        ;;
    venv)
        if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
            missing "$python is missing or older than 3.11: say make PYTHON=/path/to/python3.11"
        else
            has_venv || installed python3-venv
            has_venv || missing "$python has no venv module: apt-get install python3-venv"
            has_headers || installed python3-dev
            has_headers || missing "$python has no Python.h to compile against: apt-get install python3-dev"
        fi
        ;;
    clang)
        if ! has_fuzzer; then
            installed clang && installed "libclang-rt-$(clang_major)-dev"
            has_fuzzer || missing "no clang with libFuzzer: apt-get install clang libclang-rt-14-dev (the version of clang)"
        fi
        ;;
    java)
        has_java || installed openjdk-17-jre-headless
        has_java || missing "no Java 17 or later, which Spark needs: apt-get install openjdk-17-jre-headless, or any Java 17 or 21"
        ;;
    jdk)
        has_jdk || installed openjdk-17-jdk-headless
        has_jdk || missing "no JDK 17, which compiles src/pageseek/spark/table/shim: apt-get install openjdk-17-jdk-headless"
        ;;
    *) missing "unknown: $what" ;;
    esac
done
exit $status
