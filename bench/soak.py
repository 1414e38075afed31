#!/usr/bin/env python3
"""A soak: a server under everything at once for an hour or a night, to show that nothing is lost and nothing grows.

    bench/soak.py --server target/release/latchwork --minutes 60 --output soak

Starts a server of its own on a scratch folder, and runs until the minutes are over:

  sysbench    oltp_read_write on its own tables
  transfer    money between accounts in transactions; the sum must stay as it is
  churn       rows inserted, changed, deleted by the hundreds, with bodies that take pages of their own
  spill       sorts, groups, DISTINCT, joins, derived tables beyond their buffers; the answers must stay the same
  prepare     prepared statements and user variables, some of them left to the end of the connection
  ddl         CREATE, CREATE INDEX, copying ALTER, TRUNCATE, RENAME, DROP; ALTER and indexes of tables in use
  snapshot    START TRANSACTION WITH CONSISTENT SNAPSHOT held for minutes; the sums must stay the same
  kill        KILL QUERY and KILL CONNECTION of all of the above (QUERY only of sysbench)
  break       clients that close their socket in the middle of a statement
  idle        connections that do nothing; each knows its number at the end

Every ten seconds a line goes to OUTPUT.csv: resident memory, descriptors, threads, files and bytes in the data
folder, bytes of the log, versions and purge, queries a second. At the end OUTPUT.svg is drawn, the idle connections
are asked, the server gets SIGTERM and must end with 0, and `latchwork check` must find the folder clean.

The verdict looks at the second half of the run. A line is laid through each figure (least squares). The figure is
flat if the line rises by less than one per cent of the mean, or by less than twice the standard deviation of what
lies around the line: that is what one cannot tell from noise.

Exit status: 0 if everything is flat and nothing was wrong, otherwise 1. Standard output has the verdict as a table in
Markdown, and every fault; standard error says each minute how far it is.

Needs PyMySQL and sysbench. An idle connection takes a descriptor here and one in the server: see `ulimit -Hn`.
"""
import argparse
import csv
import itertools
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pymysql
from pymysql.constants import COMMAND

ACCOUNTS = 1000
BALANCE = 1000
FIXED_ROWS = 40_000
CHURN_ROWS = 6_000
# What a kill, a lost connection, or another client's lock may cost a statement.
KILLED = {1317, 1927, 1053, 2006, 2013, 0}
LOCKED = {1205, 1213}
# Definitions change under those who use them.
REDEFINED = {1412, 1146, 1054, 1050, 1060, 1061, 1091, 1136, 1007, 1049}
COLUMNS = ["seconds", "resident_kib", "anonymous_kib", "descriptors", "threads", "files", "bytes", "log_bytes",
           "scratch_bytes", "version_bytes", "purge_queue", "checkpoint_age", "memory_used", "open_tables",
           "prepared_statements", "connected", "heap_used", "queries", "queries_a_second", "kills", "broken", "definitions",
           "snapshots", "spills"]
JUDGED = {"resident_kib": "resident memory, KiB", "anonymous_kib": "of it not of files, KiB",
          "descriptors": "descriptors", "threads": "threads", "files": "files in the data folder",
          "bytes": "bytes in the data folder", "log_bytes": "of them the log", "version_bytes": "bytes of versions",
          "purge_queue": "rows that wait for purge", "memory_used": "bytes that statements hold"}


def figures_of_process(pid):
    with open(f"/proc/{pid}/status") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    number = lambda name: int(fields[name].split()[0])
    return number("VmRSS"), number("RssAnon"), number("Threads")


def descriptors(pid):
    """The number of descriptors, and the bytes of files that have no name any more."""
    count, unnamed = 0, 0
    for entry in os.scandir(f"/proc/{pid}/fd"):
        count += 1
        try:
            found = os.stat(entry.path)
        except OSError:
            continue
        if found.st_nlink == 0:
            unnamed += found.st_blocks * 512
    return count, unnamed


def folder_figures(folder):
    files, total, log = 0, 0, 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size = os.stat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
            files += 1
            total += size
            log += size if os.path.basename(path) == "log" else 0
    return files, total, log


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.data, self.socket = folder / "data", folder / "socket"
        self.over = threading.Event()
        self.faults, self.faults_latch = [], threading.Lock()
        # Connections that may be killed, by their id.
        self.victims = {}
        self.counts = dict.fromkeys(["kills", "broken", "definitions", "snapshots", "spills", "transfers", "errors"], 0)
        self.begin = time.monotonic()
        self.samples = []

    def fault(self, text):
        line = f"{time.monotonic() - self.begin:.0f} s: {text}"
        with self.faults_latch:
            self.faults.append(line)
        print(f"FAULT {line}", file=sys.stderr, flush=True)

    def count(self, what):
        with self.faults_latch:
            self.counts[what] += 1

    def start(self):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        if self.options.idle + 200 > limit:
            sys.exit(f"{self.options.idle} idle connections need more than the {limit} descriptors of ulimit -Hn")
        self.log = open(self.folder / "server.log", "w")
        self.server = subprocess.Popen(
            [self.options.server, "serve", "--datadir", self.data, "--socket", self.socket, "--skip-networking",
             f"--max_connections={self.options.idle + 200}", f"--key_buffer_size={self.options.cache}",
             f"--tmpdir={self.folder}", "--innodb_lock_wait_timeout=10", *self.options.option],
            stdout=self.log, stderr=self.log)
        for _ in range(600):
            if self.server.poll() is not None:
                sys.exit(f"the server did not start: {(self.folder / 'server.log').read_text()}")
            try:
                return self.connect().close()
            except pymysql.Error:
                time.sleep(0.1)
        sys.exit("the server does not answer")

    def connect(self, database=None):
        return pymysql.connect(unix_socket=str(self.socket), user="root", database=database, autocommit=True)

    # The tables.

    def prepare(self):
        connection = self.connect()
        ask = connection.cursor().execute
        ask("CREATE DATABASE soak")
        ask("CREATE DATABASE sysbench")
        ask("USE soak")
        ask("CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL, n INT NOT NULL DEFAULT 0, KEY (balance))")
        ask("INSERT INTO account (id, balance) VALUES " + ",".join(f"({n}, {BALANCE})" for n in range(ACCOUNTS)))
        ask("CREATE TABLE fixed (id INT PRIMARY KEY, k INT NOT NULL, g INT NOT NULL, word VARCHAR(60) NOT NULL, "
            "pad VARCHAR(100) NOT NULL)")
        draw = random.Random(self.options.seed)
        for chunk in range(0, FIXED_ROWS, 2000):
            rows = ",".join(f"({n}, {draw.randrange(FIXED_ROWS)}, {draw.randrange(5000)}, "
                            f"'{draw.getrandbits(160):040x}', REPEAT('p', 80))" for n in range(chunk, chunk + 2000))
            ask(f"INSERT INTO fixed VALUES {rows}")
        ask("CREATE TABLE churn (id BIGINT AUTO_INCREMENT PRIMARY KEY, worker INT NOT NULL, n INT NOT NULL, "
            "body MEDIUMTEXT NOT NULL, KEY by_worker (worker, n))")
        connection.close()
        self.sysbench("prepare")

    def sysbench(self, command, *more, **how):
        arguments = ["sysbench", "oltp_read_write", f"--mysql-socket={self.socket}", "--mysql-user=root",
                     "--mysql-db=sysbench", "--tables=2", "--table-size=10000", "--db-ps-mode=auto",
                     "--mysql-ignore-errors=1205,1213,1317,1927,2006,2013", *more, command]
        if command == "run":
            return subprocess.Popen(arguments, stdout=open(self.folder / "sysbench.log", "w"),
                                    stderr=subprocess.STDOUT, **how)
        result = subprocess.run(arguments, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"sysbench {command}: {result.stdout}{result.stderr}")
        return None

    # Those who work.

    def work(self, name, job, allowed=frozenset(), may_be_killed=True):
        """Runs `job(ask, draw)` again and again, with a new connection whenever the old one was lost."""
        draw = random.Random(f"{self.options.seed} {name}")
        while not self.over.is_set():
            connection = None
            try:
                connection = self.connect("soak")
                if may_be_killed:
                    self.victims[connection.thread_id()] = name
                cursor, last = connection.cursor(), [""]

                def ask(sql):
                    last[0] = sql
                    cursor.execute(sql)
                    return cursor.fetchall()

                while not self.over.is_set():
                    try:
                        job(ask, draw)
                    except pymysql.Error as error:
                        code = error.args[0] if error.args else 0
                        self.count("errors")
                        if code not in KILLED | LOCKED | allowed:
                            self.fault(f"{name}: {error} at {last[0][:200]}")
                        connection.ping(reconnect=False)
                        ask("ROLLBACK")
            except (pymysql.Error, OSError) as error:
                if not may_be_killed and not self.over.is_set():
                    self.fault(f"{name}: {error}")
            except Exception as error:
                self.fault(f"{name}: {type(error).__name__} {error}")
            finally:
                if connection is not None:
                    self.victims.pop(connection.thread_id(), None)
                    try:
                        connection.close()
                    except (pymysql.Error, OSError):
                        pass
            if self.server.poll() is not None:
                self.fault(f"the server has ended with {self.server.returncode}")
                self.over.set()

    def transfer(self, ask, draw):
        one, other = draw.sample(range(ACCOUNTS), 2)
        amount = draw.randrange(50)
        ask("BEGIN")
        if draw.random() < 0.3:
            ask(f"SELECT balance FROM account WHERE id IN ({one}, {other}) FOR UPDATE")
        ask(f"UPDATE account SET balance = balance - {amount}, n = n + 1 WHERE id = {one}")
        if draw.random() < 0.2:
            ask("SAVEPOINT s")
            ask(f"DELETE FROM account WHERE id = {other}")
            ask("ROLLBACK TO s")
        ask(f"UPDATE account SET balance = balance + {amount}, n = n + 1 WHERE id = {other}")
        ask("ROLLBACK" if draw.random() < 0.1 else "COMMIT")
        self.count("transfers")
        self.over.wait(0.01)

    def churn(self, ask, draw):
        worker = draw.randrange(3)
        number = draw.randrange(1_000_000)
        size = lambda: draw.choice([20, 200, 200, 200, 200, 2000, 20_000])
        rows = ",".join(f"({worker}, {number + n}, REPEAT('{n % 10}', {size()}))" for n in range(50))
        ask(f"INSERT INTO churn (worker, n, body) VALUES {rows}")
        ask(f"UPDATE churn SET body = REPEAT('u', {size()}), n = n + 1 WHERE worker = {worker} AND n >= {number} "
            "LIMIT 50")
        ask("BEGIN")
        ask(f"DELETE FROM churn WHERE worker = {worker} LIMIT 200")
        ask("ROLLBACK")
        over = ask("SELECT COUNT(*) FROM churn")[0][0] - CHURN_ROWS
        if over > 0:
            ask(f"DELETE FROM churn ORDER BY id LIMIT {over}")
        self.over.wait(0.4)

    SPILLING = [
        "SELECT MD5(GROUP_CONCAT(id)) FROM (SELECT id FROM fixed ORDER BY word LIMIT 30000) a",
        "SELECT id FROM fixed ORDER BY word, pad LIMIT 20000, 1",
        "SELECT COUNT(*), SUM(c), SUM(l) FROM (SELECT word, COUNT(*) c, MAX(LENGTH(pad)) l FROM fixed GROUP BY word) a",
        "SELECT COUNT(DISTINCT word), COUNT(DISTINCT k, g) FROM fixed",
        "SELECT COUNT(*), SUM(a.id + b.id) FROM fixed a JOIN fixed b ON a.k = b.g",
        "SELECT COUNT(*) FROM (SELECT word FROM fixed UNION SELECT pad FROM fixed) a",
        "SELECT COUNT(*) FROM fixed WHERE k IN (SELECT g + 1 FROM fixed)",
    ]

    def spill(self, ask, draw):
        for name in ["sort_buffer_size", "tmp_memory_table_size", "join_buffer_size"]:
            ask(f"SET {name} = {draw.choice([65536, 262144])}")
        ask("SET group_concat_max_len = 1000000")
        number = draw.randrange(len(self.SPILLING))
        answer = ask(self.SPILLING[number])
        expected = self.answers.setdefault(number, answer)
        if answer != expected:
            self.fault(f"{self.SPILLING[number]} gave {answer}, and {expected} before")
        self.count("spills")
        self.over.wait(0.5)

    def prepared(self, ask, draw):
        ask("PREPARE one FROM 'SELECT COUNT(*), SUM(id) FROM fixed WHERE id < ?'")
        ask("PREPARE other FROM 'SELECT COUNT(*) FROM fixed WHERE id BETWEEN ? AND ? + 10'")
        for _ in range(5):
            limit = draw.randrange(2000)
            ask(f"SET @limit = {limit}, @text = REPEAT('x', 10000)")
            found = ask("EXECUTE one USING @limit")[0]
            if found[0] != limit or (limit and found[1] != limit * (limit - 1) // 2):
                self.fault(f"a prepared statement gave {found} below {limit}")
            if (found := ask("EXECUTE other USING @limit, @limit")[0][0]) != 11:
                self.fault(f"a prepared statement counted {found}")
        if draw.random() < 0.3:
            # The statements end with the connection.
            raise ConnectionError("left on purpose")
        ask("DEALLOCATE PREPARE one")
        self.over.wait(0.3)

    def definitions(self, ask, draw):
        name = f"made{draw.randrange(8)}"
        step = draw.randrange(10)
        if step < 3:
            ask(f"DROP TABLE IF EXISTS {name}")
            options = draw.choice(["", " PAGE_SIZE=4096", " ROW_FORMAT=COMPRESSED", " PAGE_SIZE=1024"])
            ask(f"CREATE TABLE {name} (id INT PRIMARY KEY, k INT NOT NULL, word VARCHAR(60), body TEXT){options}")
            ask(f"INSERT INTO {name} SELECT id, k, word, REPEAT(pad, id % 7) FROM fixed WHERE id < 1500")
        elif step == 3:
            ask(f"CREATE INDEX by_k ON {name} (k)")
        elif step == 4:
            ask(f"ALTER TABLE {name} ADD COLUMN extra{draw.randrange(3)} BIGINT DEFAULT 7, MODIFY k BIGINT NOT NULL")
        elif step == 5:
            ask(f"TRUNCATE TABLE {name}")
        elif step == 6:
            ask(f"RENAME TABLE {name} TO made{draw.randrange(8)}")
        elif step == 7:
            ask("DROP DATABASE IF EXISTS other")
            ask("CREATE DATABASE other")
            ask("CREATE TABLE other.t SELECT * FROM fixed WHERE id < 500")
        elif step == 8 and draw.random() < 0.3:
            # Of a table that is in use.
            ask(draw.choice(["CREATE INDEX by_n ON churn (n)", "DROP INDEX by_n ON churn",
                             "ALTER TABLE churn FORCE", "ALTER TABLE churn MODIFY n BIGINT NOT NULL"]))
        else:
            ask(f"DROP TABLE IF EXISTS {name}")
        self.count("definitions")
        self.over.wait(0.2)

    SUMS = ["SELECT COUNT(*), SUM(balance), SUM(id * balance), SUM(n) FROM account",
            "SELECT COUNT(*), SUM(k), SUM(CRC32(c)) FROM sysbench.sbtest1",
            "SELECT COUNT(*), SUM(k), SUM(id * k) FROM sysbench.sbtest2 FORCE INDEX (k_2) WHERE k >= 0"]

    def snapshot(self, ask, draw):
        ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        ask("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        end = time.monotonic() + min(draw.choice([60, 120, 240]), self.options.minutes * 6)
        first = None
        while first is None or time.monotonic() < end and not self.over.is_set():
            sums = [ask(sql) for sql in self.SUMS]
            first = first or sums
            if sums != first:
                self.fault(f"a snapshot gave {sums}, and {first} before")
            if first[0][0][:2] != (ACCOUNTS, ACCOUNTS * BALANCE):
                self.fault(f"accounts and their sum are {first[0][0][:2]}")
            self.over.wait(5)
        ask("COMMIT")
        self.count("snapshots")

    def kill(self, ask, draw):
        if draw.random() < 0.2:
            found = ask("SELECT id FROM information_schema.processlist WHERE db = 'sysbench'")
            kind, victim = "QUERY", draw.choice(found)[0] if found else None
        else:
            kind, victim = draw.choice(["QUERY", "CONNECTION"]), draw.choice(list(self.victims) or [None])
        if victim is not None:
            try:
                ask(f"KILL {kind} {victim}")
                self.count("kills")
            except pymysql.Error as error:
                # It has ended by itself.
                if error.args[0] != 1094:
                    raise
        self.over.wait(draw.random())

    def breaking(self):
        draw = random.Random(f"{self.options.seed} break")
        statements = [*self.SPILLING, "UPDATE churn SET body = CONCAT(body, 'x')", "DELETE FROM churn",
                      "SELECT * FROM fixed", "INSERT INTO churn (worker, n, body) SELECT 9, id, pad FROM fixed",
                      "SELECT SLEEP(20)", "UPDATE account SET balance = 0", "DELETE FROM account"]
        # They commit what was changed before.
        definitions = ["CREATE TABLE broken (id INT PRIMARY KEY) SELECT id FROM fixed", "DROP TABLE broken",
                       "ALTER TABLE churn FORCE"]
        while not self.over.wait(draw.random() * 2):
            try:
                connection = self.connect("soak")
                if draw.random() < 0.2:
                    statement = draw.choice(definitions)
                else:
                    # What was changed must be rolled back with the connection.
                    statement = draw.choice(statements)
                    connection.query("BEGIN")
                    connection.query("UPDATE account SET balance = balance + 1 WHERE id % 100 = 7")
                connection._execute_command(COMMAND.COM_QUERY, statement)
                self.over.wait(draw.random() * 0.3)
                connection._force_close()
                self.count("broken")
            except pymysql.Error as error:
                if error.args[0] not in LOCKED:
                    self.fault(f"break: {error}")
            except OSError as error:
                self.fault(f"break: {error}")

    # Watching.

    def sample(self, observer, previous):
        resident, anonymous, threads = figures_of_process(self.server.pid)
        count, unnamed = descriptors(self.server.pid)
        files, total, log = folder_figures(self.data)
        with observer.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS")
            status = dict(cursor.fetchall())
        now, queries = time.monotonic() - self.begin, int(status["Queries"])
        rate = (queries - previous["queries"]) / (now - previous["seconds"]) if previous else 0
        with self.faults_latch:
            counts = dict(self.counts)
        found = {"seconds": round(now, 1), "resident_kib": resident, "anonymous_kib": anonymous,
                 "descriptors": count, "threads": threads, "files": files, "bytes": total, "log_bytes": log,
                 "scratch_bytes": unnamed, "version_bytes": int(status["Latchwork_version_bytes"]),
                 "purge_queue": int(status["Innodb_history_list_length"]),
                 "checkpoint_age": int(status["Innodb_checkpoint_age"]), "memory_used": int(status["Memory_used"]),
                 "open_tables": int(status["Open_tables"]), "prepared_statements": int(status["Prepared_stmt_count"]),
                 "connected": int(status["Threads_connected"]),
                 "heap_used": int(status["Memory_heap_used"]), "queries": queries, "queries_a_second": round(rate)}
        found.update({name: counts[name] for name in COLUMNS if name in counts})
        return found

    def watch(self, output):
        observer = self.connect()
        writer = csv.DictWriter(output, COLUMNS)
        writer.writeheader()
        end = self.begin + self.options.minutes * 60
        for tick in itertools.count():
            try:
                found = self.sample(observer, self.samples[-1] if self.samples else None)
            except (pymysql.Error, OSError) as error:
                self.fault(f"the observer: {error}; the server's state is {self.server.poll()}")
                return
            self.samples.append(found)
            writer.writerow(found)
            output.flush()
            if tick % 6 == 0:
                print(f"{found['seconds'] / 60:6.1f} min: {found['resident_kib'] / 1024:.0f} MiB resident, "
                      f"{found['descriptors']} descriptors, {found['threads']} threads, {found['files']} files, "
                      f"{found['bytes'] >> 20} MiB on disk, {found['queries_a_second']} queries/s, "
                      f"{found['version_bytes'] >> 10} KiB of versions, {found['purge_queue']} to purge, "
                      f"{found['kills']} kills, {len(self.faults)} faults", file=sys.stderr, flush=True)
            if self.bench.poll() is not None and not self.over.is_set():
                text = (self.folder / "sysbench.log").read_text()[-1000:]
                self.fault(f"sysbench has ended with {self.bench.returncode}: {text}")
                return
            if time.monotonic() >= end or self.over.wait(min(10, end - time.monotonic())):
                break
        observer.close()

    def run(self, output):
        self.start()
        self.prepare()
        print(f"the server is {self.server.pid} on {self.folder}; {self.options.idle} idle connections come",
              file=sys.stderr, flush=True)
        idle = []
        for number in range(self.options.idle):
            idle.append(self.connect())
            idle[-1].query(f"SET @number = {number}")
        self.answers = {}
        self.bench = self.sysbench("run", f"--threads={self.options.threads}", "--time=0", "--events=0",
                                   f"--rate={self.options.rate}")
        jobs = [("transfer 1", self.transfer), ("transfer 2", self.transfer), ("churn 1", self.churn, REDEFINED),
                ("churn 2", self.churn, REDEFINED), ("spill", self.spill), ("prepare", self.prepared),
                ("ddl 1", self.definitions, REDEFINED), ("ddl 2", self.definitions, REDEFINED),
                ("snapshot 1", self.snapshot, frozenset(), False), ("snapshot 2", self.snapshot, frozenset(), False),
                ("snapshot 3", self.snapshot, frozenset(), False), ("kill", self.kill, frozenset(), False)]
        workers = [threading.Thread(target=self.work, args=job, name=job[0]) for job in jobs]
        workers.append(threading.Thread(target=self.breaking, name="break"))
        self.begin = time.monotonic()
        for worker in workers:
            worker.start()
        try:
            self.watch(output)
        finally:
            self.over.set()
            self.bench.send_signal(signal.SIGTERM)
            self.bench.wait()
            for worker in workers:
                worker.join(120)
                if worker.is_alive():
                    self.fault(f"{worker.name} does not end")
        self.end(idle)

    def end(self, idle):
        if self.server.poll() is not None:
            return self.fault(f"the server has ended with {self.server.returncode}")
        wrong = 0
        for number, connection in enumerate(idle):
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT @number")
                    wrong += int(cursor.fetchone()[0]) != number
            except (pymysql.Error, OSError):
                wrong += 1
        if wrong:
            self.fault(f"{wrong} of {len(idle)} idle connections do not answer, or answer wrong")
        self.compare()
        for connection in idle:
            connection.close()
        self.settle()
        self.server.send_signal(signal.SIGTERM)
        try:
            code = self.server.wait(120)
        except subprocess.TimeoutExpired:
            self.server.kill()
            code = "nothing for two minutes"
        if code != 0:
            self.fault(f"SIGTERM: the server ended with {code}")
        check = subprocess.run([self.options.server, "check", self.data], capture_output=True, text=True)
        print(f"check: {check.stdout.strip().splitlines()[-1] if check.stdout.strip() else ''}")
        if check.returncode != 0:
            self.fault(f"check: {check.stdout}{check.stderr}")
        for line in (self.folder / "server.log").read_text().splitlines():
            if "panicked" in line or "[ERROR]" in line:
                self.fault(f"the server's log: {line}")

    def compare(self):
        """What is there at the end, by key and by index."""
        connection = self.connect("soak")
        with connection.cursor() as cursor:
            def ask(sql):
                cursor.execute(sql)
                return cursor.fetchall()
            if (found := ask("SELECT COUNT(*), SUM(balance) FROM account")[0]) != (ACCOUNTS, ACCOUNTS * BALANCE):
                self.fault(f"at the end there are {found} accounts and money")
            for table, index in [("account", "balance"), ("churn", "by_worker"), ("sysbench.sbtest1", "k_1")]:
                column = {"account": "balance", "churn": "worker"}.get(table, "k")
                read = lambda name: ask(f"SELECT COUNT(*), SUM(id) FROM {table} FORCE INDEX ({name}) "
                                        f"WHERE {column} > -1000000000 AND id >= 0")
                if read("PRIMARY") != read(index):
                    self.fault(f"{table} and its index {index} differ")
        connection.close()

    def settle(self):
        """Everybody has gone: only what the server itself holds is left."""
        observer = self.connect()
        for _ in range(60):
            time.sleep(1)
            last = self.sample(observer, None)
            if last["connected"] == 1 and last["purge_queue"] == 0:
                break
        print(f"after the last client: {last['resident_kib'] / 1024:.0f} MiB resident, {last['descriptors']} "
              f"descriptors, {last['threads']} threads, {last['files']} files, {last['bytes'] >> 20} MiB on disk, "
              f"{last['version_bytes']} bytes of versions, {last['purge_queue']} rows to purge, "
              f"{last['memory_used']} bytes held by statements, {last['prepared_statements']} prepared statements")
        for name in ["version_bytes", "purge_queue", "prepared_statements"]:
            if last[name]:
                self.fault(f"{name} is {last[name]} with nobody there")
        if last["connected"] != 1:
            self.fault(f"{last['connected']} connections are left where one is open")
        observer.close()


def line_through(points):
    """Least squares: the slope, and the standard deviation around the line."""
    count = len(points)
    mean_x, mean_y = (sum(values) / count for values in zip(*points))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope, (rest / max(count - 2, 1)) ** 0.5, mean_y


def verdict(samples):
    """A table of the second half, and what rises there."""
    half = samples[len(samples) // 2:]
    if len(half) < 3:
        return []
    rising = []
    hours = (half[-1]["seconds"] - half[0]["seconds"]) / 3600
    print(f"\n{len(samples)} samples; the second half, {hours * 60:.0f} minutes:\n")
    print("| figure | mean | slope an hour | rise over the half | twice the deviation around the line | |")
    print("|---|---|---|---|---|---|")
    for name, text in JUDGED.items():
        slope, deviation, mean = line_through([(found["seconds"] / 3600, found[name]) for found in half])
        rise = slope * hours
        is_flat = rise <= max(0.01 * mean, 2 * deviation)
        if not is_flat:
            rising.append(text)
        print(f"| {text} | {mean:,.0f} | {slope:+,.0f} | {rise:+,.0f} | {2 * deviation:,.0f} "
              f"| {'flat' if is_flat else 'rises'} |")
    return rising


def draw(samples, path):
    """One panel for each figure, from zero, over the minutes."""
    panels = [("resident_kib", "resident memory, MiB", 1024), ("descriptors", "descriptors", 1),
              ("files", "files in the data folder", 1), ("bytes", "MiB in the data folder", 1 << 20),
              ("version_bytes", "MiB of versions", 1 << 20), ("queries_a_second", "queries a second", 1)]
    width, height, left, panel = 760, 90, 60, 120
    minutes = samples[-1]["seconds"] / 60 or 1
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + left + 20} {panel * len(panels) + 30}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for row, (name, title, unit) in enumerate(panels):
        top = 20 + row * panel
        values = [found[name] / unit for found in samples[1:]]
        highest = max(values) or 1
        points = " ".join(f"{left + found['seconds'] / 60 / minutes * width:.1f},"
                          f"{top + height - value / highest * height:.1f}"
                          for found, value in zip(samples[1:], values))
        lines.append(f'<text x="{left}" y="{top - 5}">{title}</text>'
                     f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">{highest:,.0f}</text>'
                     f'<text x="{left - 6}" y="{top + height}" text-anchor="end">0</text>'
                     f'<path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="#999"/>'
                     f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>')
    lines.append(f'<text x="{left + width}" y="{panel * len(panels) + 20}" text-anchor="end">'
                 f'{minutes:.0f} minutes</text></svg>')
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/release/latchwork", help="the binary (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="how long (%(default)s)")
    parser.add_argument("--idle", type=int, default=5000, help="idle connections (%(default)s)")
    parser.add_argument("--threads", type=int, default=4, help="sysbench's clients (%(default)s)")
    parser.add_argument("--rate", type=int, default=0, help="its transactions a second; 0 = all that it can")
    parser.add_argument("--cache", default="32M", help="key_buffer_size (%(default)s)")
    parser.add_argument("--option", action="append", default=[], help="one more option of the server")
    parser.add_argument("--seed", type=int, default=1, help="of what the clients choose (%(default)s)")
    parser.add_argument("--folder", help="where to put the data; it is kept (default: a temporary one)")
    parser.add_argument("--output", default="soak", help="OUTPUT.csv and OUTPUT.svg (%(default)s)")
    options = parser.parse_args()
    if shutil.which("sysbench") is None:
        sys.exit("sysbench is not installed")
    options.server = os.path.abspath(options.server)
    if options.folder:
        pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(options.folder or tempfile.mkdtemp(prefix="soak-")).absolute()
    soak = Soak(options, folder)
    try:
        with open(f"{options.output}.csv", "w", newline="") as output:
            soak.run(output)
    finally:
        if hasattr(soak, "server") and soak.server.poll() is None:
            soak.server.kill()
            soak.server.wait()
    print(", ".join(f"{name}: {count}" for name, count in soak.counts.items()))
    rising = verdict(soak.samples)
    if soak.samples:
        draw(soak.samples, f"{options.output}.svg")
    print(f"\n{len(soak.faults)} faults")
    for fault in soak.faults:
        print(f"- {fault}")
    if rising:
        print(f"not flat: {', '.join(rising)}")
    if soak.faults or rising:
        print(f"the data and the server's log are in {folder}")
        sys.exit(1)
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
