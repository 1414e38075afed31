#!/usr/bin/env bash
# Runs test suites of client libraries against MariaDB and Latchwork, and shows the tests whose results differ.
#
#   tests/drivers/run.sh LATCHWORK go mysqlclient       sources from the Go proxy and from PyPI
#   PYMYSQL=FOLDER tests/drivers/run.sh LATCHWORK pymysql   a checkout of PyMySQL: its sdist lacks the suite
#   MYSQL2=FOLDER tests/drivers/run.sh LATCHWORK mysql2     a checkout of mysql2: its package lacks the suite
#
# LATCHWORK is the server's binary. Everything else goes to a scratch folder, which stays for its logs.
set -euo pipefail
latchwork=$(realpath "$1")
shift
work=$(mktemp -d)
echo "logs: $work"
cd "$work"
export PATH=$PATH:/usr/sbin
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
ports=("$(free_port)" "$(free_port)")
servers=(mariadb latchwork)

mariadb-install-db --no-defaults --datadir="$work/m" --auth-root-authentication-method=normal \
    --skip-test-db >install.log 2>&1
mariadbd --no-defaults --user="$(id -un)" --datadir="$work/m" --socket="$work/mariadb.sock" \
    --port="${ports[0]}" --bind-address=127.0.0.1 --local-infile=1 >mariadb.log 2>&1 &
pids=($!)
"$latchwork" serve --datadir "$work/l" --socket "$work/latchwork.sock" --port "${ports[1]}" \
    --local_infile=1 >latchwork.log 2>&1 &
pids+=($!)
trap 'kill "${pids[@]}"; wait' EXIT

for server in "${servers[@]}"; do
    for _ in $(seq 100); do
        mariadb --no-defaults -uroot -S "$work/$server.sock" -e 'SELECT 1' >/dev/null 2>&1 && break
        sleep 0.3
    done
    # An anonymous account of MariaDB's would take localhost away from suite@'%'.
    [ "$server" = latchwork ] || mariadb --no-defaults -uroot -S "$work/$server.sock" \
        -e "DELETE FROM mysql.global_priv WHERE user = ''; FLUSH PRIVILEGES"
    mariadb --no-defaults -uroot -S "$work/$server.sock" -e "
        CREATE DATABASE test1; CREATE DATABASE test2; CREATE USER suite IDENTIFIED BY 'secret';
        GRANT ALL ON *.* TO suite WITH GRANT OPTION"
done

python() { # a virtual environment with what both Python suites need
    [ -d venv ] || { python3 -m venv venv && venv/bin/pip install -q pytest cryptography PyNaCl mysqlclient==2.3.2; }
}

results_of_pytest() { # FILE
    grep -E '^(PASSED|FAILED|SKIPPED|ERROR) ' "$1" | sed 's/ - .*//' | sort
}

suite_go() { # SERVER PORT
    if [ ! -x go.test ]; then
        local folder
        folder=$(go mod download -json github.com/go-sql-driver/mysql@v1.9.3 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
        cp -r "$folder" gosrc && chmod -R u+w gosrc && (cd gosrc && go test -c -o ../go.test .) >go.build.log 2>&1
    fi
    # The test that is left out connects to an address on the internet.
    (cd gosrc && MYSQL_TEST_USER=suite MYSQL_TEST_PASS=secret MYSQL_TEST_PROT=tcp MYSQL_TEST_DBNAME=test1 \
        MYSQL_TEST_ADDR=127.0.0.1:$2 ../go.test -test.v -test.skip TestConnectorReturnsTimeout) >"go.$1.log" 2>&1 || true
    grep -E '^ *--- (PASS|FAIL|SKIP)' "go.$1.log" | sed 's/ (.*//; s/^ *--- //' | sort >"go.$1.results"
}

suite_mysqlclient() { # SERVER PORT
    python
    if [ ! -d mysqlclient-2.3.2 ]; then
        venv/bin/pip download -q --no-deps --no-binary :all: mysqlclient==2.3.2
        tar xzf mysqlclient-2.3.2.tar.gz
    fi
    printf '[MySQLdb-tests]\nhost=127.0.0.1\nport=%s\nuser=suite\npassword=secret\ndatabase=test1\ndefault-character-set=utf8mb4\n' \
        "$2" >"$1.cnf"
    (cd mysqlclient-2.3.2 && TESTDB=$work/$1.cnf ../venv/bin/python -m pytest -q -rA tests) >"mysqlclient.$1.log" 2>&1 || true
    results_of_pytest "mysqlclient.$1.log" >"mysqlclient.$1.results"
}

suite_pymysql() { # SERVER PORT
    python
    rm -rf pymysql && cp -r "${PYMYSQL:?a checkout of PyMySQL}" pymysql
    local account="\"host\": \"127.0.0.1\", \"port\": $2, \"user\": \"suite\", \"password\": \"secret\""
    echo "[{$account, \"database\": \"test1\", \"use_unicode\": true, \"local_infile\": true}, {$account, \"database\": \"test2\"}]" \
        >pymysql/pymysql/tests/databases.json
    (cd pymysql && PYTHONPATH=. ../venv/bin/python -m pytest -q -rA pymysql) >"pymysql.$1.log" 2>&1 || true
    results_of_pytest "pymysql.$1.log" >"pymysql.$1.results"
}

suite_mysql2() { # SERVER PORT
    if [ ! -d mysql2 ]; then
        cp -r "${MYSQL2:?a checkout of mysql2}" mysql2
        # Latchwork has no temporary tables yet. The tests that ask for these do not test them, but one.
        grep -rliE 'create temporary table' mysql2/test |
            xargs sed -i -E 's/create temporary table( if not exists)?/CREATE OR REPLACE TABLE/I'
        (cd mysql2 && npm install --no-audit --no-fund) >npm.log 2>&1
    fi
    (cd mysql2 && CI=1 MYSQL_HOST=127.0.0.1 MYSQL_USER=suite MYSQL_PASSWORD=secret MYSQL_DATABASE=test1 \
        MYSQL_PORT=$2 npx poku) >"mysql2.$1.log" 2>&1 || true
    sed 's/\x1b\[[0-9;]*m//g' "mysql2.$1.log" | grep -oE '(PASS|FAIL|SKIP) +test/[^ ]+' | tr -s ' ' | sort -u >"mysql2.$1.results"
}

for suite in "$@"; do
    for i in 0 1; do
        "suite_$suite" "${servers[$i]}" "${ports[$i]}"
        echo "$suite ${servers[$i]}:" $(cut -d' ' -f1 "$suite.${servers[$i]}.results" | sort | uniq -c)
    done
    diff "$suite.mariadb.results" "$suite.latchwork.results" || true
done
