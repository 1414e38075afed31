#!/usr/bin/env bash
# Runs every test of the project, on a fresh Debian with a Rust toolchain: installs what it needs first.
#
#   ./test.sh            everything (about a quarter of an hour on two cores, from nothing)
#   ./test.sh STEP...    only these steps, in this order, by the names that `./test.sh --list` gives
#
# Every step runs even if an earlier one failed. The summary at the end says what failed, and so does the exit status.
set -uo pipefail
cd "$(dirname "$0")"
# What incremental builds need costs a build from nothing a tenth, and nobody builds on it here.
[ -d target ] || export CARGO_INCREMENTAL=0

# Steps run in two lanes side by side: one builds with optimisation and waits for servers, the other needs the processors.
# Each lane has a profile of Cargo's for itself, so that neither waits for the other's build lock; but the first lane ends
# earlier, and does a part of the other's work then.
lane_of_tests=(format lint tidy unit counting models orderings smallest-cache row-tier)
lane_of_release=(release clients isolation kills documents examples peers)
all_steps=(tools "${lane_of_tests[@]}" "${lane_of_release[@]}")

# Crates with models (feature `shuttle`), and those whose hits are counted (feature `counting`).
concurrent=(base vfs pagecache rowtier transactions wal engine)
counted=(pagecache rowtier transactions engine)

# Crates whose coverage is published.
covered=(engine wal pagecache transactions)

# What the end-to-end tests drive the server with, and the browser that opens the lab's reports. The servers' own packages
# come without a running service.
packages=(build-essential mariadb-server-core mariadb-client-core mariadb-client libmariadb-dev sysbench tzdata python3 python3-pymysql
    python3-cryptography python3-sqlalchemy python3-prometheus-client libmimalloc2.0 libjemalloc2 libtcmalloc-minimal4 chromium openssl
    php-cli php-mysql nodejs node-mysql)

installed() {
    command -v cc >/dev/null && command -v mariadb >/dev/null && command -v mariadb-dump >/dev/null &&
        command -v mariadb-install-db >/dev/null && command -v mariadb_config >/dev/null && command -v sysbench >/dev/null && command -v chromium >/dev/null && command -v openssl >/dev/null && php -m 2>/dev/null | grep -q mysqli && [ -d /usr/share/nodejs/mysql ] && command -v node >/dev/null &&
        { command -v mariadbd || [ -x /usr/sbin/mariadbd ]; } >/dev/null &&
        [ "$(compgen -G '/usr/lib/*/lib*malloc*.so.[0-9]' | grep -cE 'libmimalloc.so|libjemalloc.so|libtcmalloc_minimal.so')" -ge 3 ] &&
        { python3 -c 'import pymysql, cryptography, sqlalchemy, prometheus_client' || /usr/bin/python3 -c 'import pymysql, cryptography, sqlalchemy, prometheus_client'; } 2>/dev/null
}

step_tools() { # compilers, MariaDB, sysbench, Python drivers
    command -v cargo >/dev/null || { echo "no cargo: install Rust from https://rustup.rs"; return 1; }
    installed && { echo "all there"; return 0; }
    command -v apt-get >/dev/null || { echo "no apt-get; please install: ${packages[*]}"; return 1; }
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { echo "as root, please: apt-get install ${packages[*]}"; return 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
            "${packages[@]}" && installed
}

step_format() { # rustfmt
    cargo fmt --all --check
}

step_lint() { # clippy, warnings denied, features on and off
    cargo clippy --workspace --all-targets -- -D warnings &&
        cargo clippy "${concurrent[@]/#/--package=latchwork-}" --all-targets --features shuttle -- -D warnings &&
        cargo clippy "${counted[@]/#/--package=latchwork-}" --all-targets --features counting -- -D warnings &&
        cargo clippy -p latchwork-lab --all-targets --features peers -- -D warnings
}

step_tidy() { # layers, comments, sizes of functions, dead public items, formats: tests/tidy
    cargo test -p latchwork-tidy
}

step_unit() { # every crate's own tests, doc tests and fuzz targets on seeded inputs included
    # Without bench, which has no tests: its features would build everything below it once more.
    cargo test --workspace --exclude latchwork --exclude latchwork-tidy --exclude latchwork-orderings --exclude latchwork-bench \
        --no-fail-fast
}

step_counting() { # a hit writes nothing shared and takes no latch
    cargo test "${counted[@]/#/--package=latchwork-}" --features counting --test counting
}

step_models() { # latches, frames and trees under a scheduler that tries interleavings
    cargo test -p latchwork-base -p latchwork-vfs -p latchwork-pagecache -p latchwork-rowtier -p latchwork-wal \
        -p latchwork-transactions --features shuttle --lib --test '*models' --test moves &&
        cargo test -p latchwork-engine --features shuttle --lib models
}

step_orderings() { # weak memory: each ordering is made weaker, and a model has to fail
    cargo test -p latchwork-orderings
}

step_smallest-cache() { # the engine's whole suite with the smallest cache that can be configured
    LATCHWORK_TEST_CACHE=smallest cargo test -p latchwork-engine --tests
}

step_row-tier() { # the engine's unit tests with a tiny row tier that is asked before any page
    LATCHWORK_TEST_ROW_TIER=first cargo test -p latchwork-engine --lib &&
        LATCHWORK_TEST_ROW_TIER=first LATCHWORK_TEST_CACHE=smallest cargo test -p latchwork-engine --lib
}

step_documents() { # links and examples in the documentation
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --quiet
}

step_examples() { # the examples of use run to their end; those that measure or write tables are only built, by lint
    local example crate status=0
    for example in crates/*/examples/*.rs; do
        case "$(basename "$example" .rs)" in
            *_rate | *_cost | *_ratio | *_speed | *_tables | connection_models) continue ;;
        esac
        crate=$(sed -n 's/^name = "\(.*\)"/\1/p' "$(dirname "$(dirname "$example")")/Cargo.toml" | head -1)
        echo "- $(basename "$example" .rs) of $crate"
        cargo run --quiet -p "$crate" --example "$(basename "$example" .rs)" || status=1
    done
    return $status
}

step_peers() { # the comparisons with other stores and other caches give right rows
    cargo test --quiet -p latchwork-lab --features peers trace &&
        cargo run --quiet -p latchwork-bench -- point-lookups --rows 5000 --threads 1,2 --rounds 1 --seconds 0.1
}

step_release() { # the binary as users build it
    cargo build --release
}

step_clients() { # real clients against the release build, and the lab
    LATCHWORK_REQUIRE_CLIENTS=1 cargo test --release -p latchwork -- --skip isolation:: --skip histories:: --skip kills::
}

step_isolation() { # what sessions see of each other: docs/isolation.md
    LATCHWORK_REQUIRE_CLIENTS=1 cargo test --release -p latchwork --test e2e -- isolation:: histories::
}

step_kills() { # SIGKILL under load and during recovery; LATCHWORK_KILL_ROUNDS=100 for more than a look
    LATCHWORK_REQUIRE_CLIENTS=1 cargo test --release -p latchwork --test e2e kills::
}

step_coverage() { # (not among those that run by default) what the engine's and its parts' own tests run through
    # Branches are counted by the nightly compiler alone. The LLVM tools are those of rustup, or Debian's of the
    # version that the compiler has.
    local toolchain=() branches=()
    if cargo +nightly --version >/dev/null 2>&1; then toolchain=(+nightly) branches=(--branch); fi
    local version
    version=$(rustc "${toolchain[@]}" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    if command -v "llvm-cov-$version" >/dev/null; then
        export LLVM_COV="llvm-cov-$version" LLVM_PROFDATA="llvm-profdata-$version"
    fi
    cargo llvm-cov --version >/dev/null 2>&1 || cargo install --locked cargo-llvm-cov || return 1
    cargo "${toolchain[@]}" llvm-cov "${branches[@]}" --no-fail-fast --json --output-path target/coverage.json \
        "${covered[@]/#/--package=latchwork-}" &&
        python3 bench/coverage.py target/coverage.json docs/coverage.md
}

describe() { sed -n "s/^step_$1() { # //p" "$0"; }

if [ "${1:-}" = --list ]; then
    for step in "${all_steps[@]}" coverage; do printf '%-16s %s\n' "$step" "$(describe "$step")"; done
    exit 0
fi
for step in "$@"; do
    declare -F "step_$step" >/dev/null || { echo "there is no step $step; see ./test.sh --list"; exit 2; }
done

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
TIMEFORMAT='%R %U %S'
begin=$SECONDS

# Runs one step. Writes a line for the summary: verdict, wall and processor seconds.
run_step() {
    local step=$1 verdict=FAILED wall user system
    { time { "step_$step" </dev/null 2>&1 && touch "$scratch/$step.ok"; } >&3; } 3>&1 2>"$scratch/$step.time"
    [ -e "$scratch/$step.ok" ] && verdict=ok
    read -r wall user system <"$scratch/$step.time"
    printf '%-16s %-7s %4.0f s %5.0f s   %s\n' "$step" "$verdict" "$wall" \
        "$(awk "BEGIN { print $user + $system }")" "$(describe "$step")" >>"$scratch/summary"
    printf '=== %s: %s\n' "$step" "$verdict"
}

# Runs steps one after the other, and prints what a step said when it has ended, so that two lanes do not mix.
run_lane() {
    local step
    for step in "$@"; do
        printf '(%s begins)\n' "$step"
        run_step "$step" >"$scratch/$step.log" 2>&1
        { flock 9; printf '\n=== %s: %s\n' "$step" "$(describe "$step")"; cat "$scratch/$step.log"; } 9>"$scratch/lock"
    done
}

if [ $# -gt 0 ]; then
    for step in "$@"; do
        printf '\n=== %s: %s\n' "$step" "$(describe "$step")"
        run_step "$step"
    done
else
    run_lane tools
    # Without the tools the rest would only fail in less clear ways.
    if [ -e "$scratch/tools.ok" ]; then
        run_lane "${lane_of_tests[@]}" &
        run_lane "${lane_of_release[@]}"
        wait
    fi
fi

printf '\nsummary, %d minutes %d seconds (wall and processor seconds of each step)\n' \
    $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60))
cat "$scratch/summary"
failed=$(grep -c '^[^ ]* *FAILED' "$scratch/summary")
if [ "$failed" = 0 ]; then echo "everything passed"; else echo "$failed step(s) failed"; exit 1; fi
