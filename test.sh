#!/usr/bin/env bash
# Runs every test of the project, on a fresh Debian with a Rust toolchain: installs what it needs first.
#
#   ./test.sh            everything (about a quarter of an hour on two cores, from nothing)
#   ./test.sh STEP...    only these steps, by the names that `./test.sh --list` gives
#
# Every step runs even if an earlier one failed; the summary at the end says what failed, and so does the exit status.
set -uo pipefail
cd "$(dirname "$0")"

steps=(tools format lint unit counting models smallest-cache row-tier documents examples release clients isolation kills lab peers fuzz)

# What the end-to-end tests drive the server with, and the browser that opens the lab's reports. The servers' own packages
# come without a running service.
packages=(build-essential mariadb-server-core mariadb-client-core mariadb-client libmariadb-dev sysbench python3 python3-pymysql
    python3-sqlalchemy python3-prometheus-client libmimalloc2.0 libjemalloc2 libtcmalloc-minimal4 chromium)

installed() {
    command -v cc >/dev/null && command -v mariadb >/dev/null && command -v mariadb-dump >/dev/null &&
        command -v mariadb-install-db >/dev/null && command -v mariadb_config >/dev/null && command -v sysbench >/dev/null && command -v chromium >/dev/null &&
        { command -v mariadbd || [ -x /usr/sbin/mariadbd ]; } >/dev/null &&
        [ "$(compgen -G '/usr/lib/*/lib*malloc*.so.[0-9]' | grep -cE 'libmimalloc.so|libjemalloc.so|libtcmalloc_minimal.so')" -ge 3 ] &&
        { python3 -c 'import pymysql, sqlalchemy, prometheus_client' || /usr/bin/python3 -c 'import pymysql, sqlalchemy, prometheus_client'; } 2>/dev/null
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
    cargo fmt --all --check && cargo fmt --manifest-path bench/Cargo.toml --check &&
        cargo fmt --manifest-path fuzz/Cargo.toml --check
}

step_lint() { # clippy, warnings denied, features on and off
    cargo clippy --workspace --all-targets -- -D warnings &&
        cargo clippy -p latchwork-pagecache --all-targets --features counting -- -D warnings &&
        cargo clippy -p latchwork-base --all-targets --features shuttle -- -D warnings &&
        cargo clippy -p latchwork-pagecache --all-targets --features shuttle -- -D warnings &&
        cargo clippy -p latchwork-rowtier --all-targets --features counting -- -D warnings &&
        cargo clippy -p latchwork-rowtier --all-targets --features shuttle -- -D warnings &&
        cargo clippy -p latchwork-transactions --all-targets --features counting -- -D warnings &&
        cargo clippy -p latchwork-transactions --all-targets --features shuttle -- -D warnings &&
        cargo clippy -p latchwork-wal --all-targets --features shuttle -- -D warnings &&
        cargo clippy -p latchwork-engine --all-targets --features shuttle -- -D warnings
}

step_unit() { # every crate's own tests, doc tests included
    cargo test --workspace --exclude latchwork
}

step_counting() { # a hit writes nothing shared and takes no latch
    cargo test -p latchwork-pagecache --features counting &&
        cargo test -p latchwork-rowtier --features counting --test counting &&
        cargo test -p latchwork-transactions --features counting --test counting
}

step_models() { # latches and frames under a scheduler that tries interleavings
    cargo test -p latchwork-base --features shuttle && cargo test -p latchwork-pagecache --features shuttle && cargo test -p latchwork-wal --features shuttle &&
        cargo test -p latchwork-transactions --features shuttle &&
        cargo test -p latchwork-rowtier --features shuttle --test models &&
        cargo test -p latchwork-engine --features shuttle --lib models
}

step_smallest-cache() { # the engine's whole suite with the smallest cache that can be configured
    LATCHWORK_TEST_CACHE=smallest cargo test -p latchwork-engine
}

step_row-tier() { # the engine's whole suite with a tiny row tier that is asked before any page
    LATCHWORK_TEST_ROW_TIER=first cargo test -p latchwork-engine --lib &&
        LATCHWORK_TEST_ROW_TIER=first LATCHWORK_TEST_CACHE=smallest cargo test -p latchwork-engine --lib
}

step_documents() { # links and examples in the documentation
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --quiet
}

step_examples() { # the examples of use run to their end; those that measure are only built, by lint
    local example crate status=0
    for example in crates/*/examples/*.rs; do
        case "$(basename "$example" .rs)" in
            *_rate | *_cost | *_ratio | *_speed | connection_models) continue ;;
        esac
        crate=$(sed -n 's/^name = "\(.*\)"/\1/p' "$(dirname "$(dirname "$example")")/Cargo.toml" | head -1)
        echo "- $(basename "$example" .rs) of $crate"
        cargo run --quiet -p "$crate" --example "$(basename "$example" .rs)" || status=1
    done
    return $status
}

step_release() { # the binary as users build it
    cargo build --release
}

step_clients() { # real clients against the release build
    LATCHWORK_REQUIRE_CLIENTS=1 cargo test --release -p latchwork -- --skip isolation:: --skip histories:: --skip kills::
}

step_isolation() { # what sessions see of each other: docs/isolation.md
    LATCHWORK_REQUIRE_CLIENTS=1 cargo test --release -p latchwork --test e2e -- isolation:: histories::
}

step_kills() { # SIGKILL under load and during recovery; LATCHWORK_KILL_ROUNDS=100 for more than a look
    LATCHWORK_REQUIRE_CLIENTS=1 cargo test --release -p latchwork --test e2e kills::
}

step_lab() { # the segments experiment, its smallest form
    local folder
    folder=$(mktemp -d) || return 1
    cargo run --release --quiet -- lab run segments --threads 1,2 --points 10 --segments 0,4 --rows 20000 \
        --warmup 0.2 --time 0.3 --out "$folder" && [ -n "$(find "$folder" -name '*.html')" ] &&
        [ -n "$(find "$folder" -name '*.json')" ]
    local status=$?
    rm -rf "$folder"
    return $status
}

step_peers() { # the comparisons with other stores and other caches still build and give right rows
    cargo clippy -p latchwork-lab --all-targets --features peers -- -D warnings &&
        cargo test --quiet -p latchwork-lab --features peers trace &&
        cargo run --quiet --manifest-path bench/Cargo.toml -- point-lookups --rows 5000 --threads 1,2 --rounds 1 --seconds 0.1
}

step_fuzz() { # the fuzz targets compile, and hold on a few thousand inputs
    cargo test --quiet --lib --manifest-path fuzz/Cargo.toml
}

describe() { sed -n "s/^step_$1() { # //p" "$0"; }

if [ "${1:-}" = --list ]; then
    for step in "${steps[@]}"; do printf '%-16s %s\n' "$step" "$(describe "$step")"; done
    exit 0
fi
[ $# -gt 0 ] && steps=("$@")

summary=()
failed=0
begin=$SECONDS
for step in "${steps[@]}"; do
    declare -F "step_$step" >/dev/null || { echo "there is no step $step; see ./test.sh --list"; exit 2; }
    printf '\n=== %s: %s\n' "$step" "$(describe "$step")"
    start=$SECONDS
    if "step_$step"; then verdict=ok; else verdict=FAILED; failed=$((failed + 1)); fi
    summary+=("$(printf '%-16s %-7s %4d s   %s' "$step" "$verdict" $((SECONDS - start)) "$(describe "$step")")")
    printf '=== %s: %s\n' "$step" "$verdict"
    # Without the tools the rest would only fail in less clear ways.
    [ "$step" = tools ] && [ "$verdict" = FAILED ] && break
done

printf '\nsummary, %d minutes %d seconds\n' $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60))
printf '%s\n' "${summary[@]}"
if [ "$failed" = 0 ]; then echo "everything passed"; else echo "$failed step(s) failed"; exit 1; fi
