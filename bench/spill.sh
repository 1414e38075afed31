#!/usr/bin/env bash
# Times statements that keep more rows than fit into memory: sort, groups, DISTINCT, hash joins, a derived table.
#
#   bench/spill.sh load SOCKET [MILLIONS]    makes the tables in the server at the socket: 5 million rows (1 GB)
#                                            and 2 million; with 20, 20 million (4 GB) and 8 million
#   bench/spill.sh run SOCKET PID [SETTING]  prints for each statement its time, the server's peak resident
#                                            memory while it ran (VmHWM), and the result, to be compared
#
# SETTING is SQL that goes before each statement: for MariaDB "SET join_cache_level = 4;", its hash join.
# LIMIT=SECONDS (600) ends a statement. ONLY=REGEX chooses statements by name. The peak needs the rights to
# write /proc/PID/clear_refs. A server in a control group of 512 MiB (version 1; GROUP is a new folder below the one
# that /proc/self/cgroup names for memory):
#
#   mkdir GROUP; echo 512M >GROUP/memory.limit_in_bytes
#   sh -c 'echo $$ >GROUP/tasks; exec latchwork serve ...'
#
# Where no control group can be made, a bound on the memory that a server may ask for is
# "prlimit --data=BYTES latchwork serve ...".
set -euo pipefail

generate() {
    python3 - "$1" "$2" <<'PYTHON'
import random, sys
folder, rows = sys.argv[1], int(sys.argv[2]) * 1_000_000
random.seed(5)
letters = "abcdefghijklmnopqrstuvwxyz"
words = ["".join(random.choice(letters) for _ in range(30)) for _ in range(1000)]
pad = "x" * 90
with open(f"{folder}/big.csv", "w") as file:
    for row in range(rows):
        k, g = int(random.random() * (rows * 2 // 5)), int(random.random() * (rows // 5))
        file.write(f"{row}\t{k}\t{g}\t{words[k % 1000]}{g}\t{pad}{k}\n")
with open(f"{folder}/part.csv", "w") as file:
    for row in range(rows * 2 // 5):
        file.write(f"{row}\t{row * 7919 % (rows * 2 // 5)}\t{words[row % 1000]}{pad}\n")
PYTHON
}

load() {
    local socket=$1 millions=${2:-5} folder
    folder=$(mktemp -d)
    generate "$folder" "$millions"
    mariadb --local-infile=1 -S "$socket" -uroot -e "
        CREATE DATABASE IF NOT EXISTS big;
        USE big;
        CREATE TABLE big (id INT PRIMARY KEY, k INT NOT NULL, g INT NOT NULL, s VARCHAR(60) NOT NULL,
                          pad VARCHAR(120) NOT NULL);
        CREATE TABLE part (id INT PRIMARY KEY, k INT NOT NULL, pad VARCHAR(130) NOT NULL);
        LOAD DATA LOCAL INFILE '$folder/big.csv' INTO TABLE big;
        LOAD DATA LOCAL INFILE '$folder/part.csv' INTO TABLE part;"
    rm -r "$folder"
}

# The statements for tables of $1 rows, about the same work a row for each size. The derived table has 20 million
# rows if there are 5, 10 or 20 million.
statements() {
    local rows=$1 piece=5000000 derived="" nth from
    for nth in 0 1 2 3; do
        from=$((nth * piece % rows))
        derived+="${derived:+ UNION ALL }SELECT id, k, s FROM big WHERE id >= $from AND id < $((from + piece))"
    done
    cat <<SQL
order_by|SELECT SUM(id * (c + 1)) FROM (SELECT id, id % 7 AS c, s FROM big ORDER BY s, id LIMIT $((rows * 3 / 5)), $((rows * 2 / 5))) d
order_by_wide|SELECT MD5(GROUP_CONCAT(id)) FROM (SELECT id, s, pad, k, g FROM big ORDER BY pad, id LIMIT $((rows - 10)), 10) d
group_by|SELECT COUNT(*), SUM(n), MAX(m) FROM (SELECT SQL_BIG_RESULT g, s, COUNT(*) n, MAX(k) m FROM big GROUP BY g, s) d
count_distinct|SELECT COUNT(DISTINCT s), COUNT(DISTINCT k) FROM big
hash_join|SELECT COUNT(*), SUM(b.id), MAX(p.pad) FROM big b JOIN part p ON b.k = p.k
left_join|SELECT COUNT(*), COUNT(p.id), MIN(p.pad) FROM big b LEFT JOIN part p ON p.k = b.g - $((rows / 10))
derived|SELECT COUNT(*), SUM(k), MIN(s) FROM ($derived) d
SQL
}

run() {
    local socket=$1 pid=$2 setting=${3:-} rows name sql begin result end peak
    rows=$(mariadb -S "$socket" -uroot -N big -e "SELECT MAX(id) + 1 FROM big")
    while IFS='|' read -r name sql; do
        [[ $name =~ ${ONLY:-} ]] || continue
        echo 5 >"/proc/$pid/clear_refs"
        begin=$(date +%s.%N)
        result=$(timeout "${LIMIT:-600}" mariadb -S "$socket" -uroot -N big -e "$setting $sql" 2>&1 | tail -1) || true
        end=$(date +%s.%N)
        peak=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$pid/status")
        printf '%-15s %8.1f s %6d MiB  %s\n' "$name" "$(echo "$end - $begin" | bc)" "$peak" "${result:0:70}"
    done < <(statements "$rows")
}

case "${1:-}" in
    load | run) "$@" ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" && exit 1 ;;
esac
