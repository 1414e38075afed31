#!/usr/bin/env python3
"""Many connections: what idle ones cost, what they cost the busy ones, and how long a queue for one row takes.

    bench/connections.py --socket PATH --pid PID [--idle 0,1000,5000,10000] [--busy 64] [--seconds 10]
                         [--waiters 1000,5000] [--user root]

Starts nothing and stops nothing: a server listens at the socket, with max_connections above the largest number.
sysbench makes the busy connections. Prints a table in Markdown; figures say nothing without the machine's state,
which is printed with them.
"""
import argparse
import os
import pymysql
import resource
import socket
import subprocess
import sys
import threading
import time


def status(pid, field):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field))


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(options, database=None):
    return pymysql.connect(unix_socket=options.socket, user=options.user, database=database, autocommit=True)


def sysbench(options, command, *more):
    arguments = ["sysbench", options.workload, f"--mysql-socket={options.socket}", f"--mysql-user={options.user}",
                 "--mysql-db=connections", "--tables=1", "--table-size=10000", "--db-ps-mode=auto", "--percentile=99",
                 *more, command]
    result = subprocess.run(arguments, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"sysbench {command}: {result.stdout}{result.stderr}")
    return result.stdout


def figure(text, name):
    line = next(line for line in text.splitlines() if line.strip().startswith(name))
    return line.split(":", 1)[1].split()


def busy(options):
    text = sysbench(options, "run", f"--threads={options.busy}", f"--time={options.seconds}")
    rate = float(figure(text, "transactions")[1].strip("(").split()[0])
    return rate, float(figure(text, "99th percentile")[0])


def idle_connections(options):
    print(f"| idle | {options.busy} busy: transactions a second | 99th percentile, ms "
          "| KiB of memory an idle connection | ms to connect each | threads |")
    print("|---|---|---|---|---|---|")
    connections = []
    empty = status(options.pid, "VmRSS")
    for count in options.idle:
        begin = time.monotonic()
        added = count - len(connections)
        while len(connections) < count:
            connections.append(connect(options))
        took = (time.monotonic() - begin) * 1000 / max(added, 1)
        memory = (status(options.pid, "VmRSS") - empty) / max(count, 1)
        threads = status(options.pid, "Threads")
        rate, latency = busy(options)
        print(f"| {count} | {rate:.0f} | {latency:.2f} | {memory:.0f} | {took:.2f} | {threads} |", flush=True)
    for connection in connections:
        connection.close()


def waiters(options):
    print("| waiters for one row | s until all wait | server's processor s | s until all are done "
          "| server's processor s |")
    print("|---|---|---|---|---|")
    for count in options.waiters:
        holder = connect(options, "connections")
        with holder.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS hot")
            cursor.execute("CREATE TABLE hot (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB")
            cursor.execute("INSERT INTO hot VALUES (1, 0)")
            cursor.execute("BEGIN")
            cursor.execute("SELECT n FROM hot WHERE id = 1 FOR UPDATE")
        connections = [connect(options, "connections") for _ in range(count)]
        for connection in connections:
            connection.query("SET innodb_lock_wait_timeout = 600")
        begin, before = time.monotonic(), processor_seconds(options.pid)
        # Sent without waiting for the answer.
        for connection in connections:
            connection._execute_command(pymysql.constants.COMMAND.COM_QUERY, "UPDATE hot SET n = n + 1 WHERE id = 1")
        watcher = connect(options)
        while waiting(watcher) < count:
            time.sleep(0.05)
        queued, queued_processor = time.monotonic() - begin, processor_seconds(options.pid) - before
        begin, before = time.monotonic(), processor_seconds(options.pid)
        holder.commit()
        for connection in connections:
            connection._read_query_result()
        done, done_processor = time.monotonic() - begin, processor_seconds(options.pid) - before
        with holder.cursor() as cursor:
            cursor.execute("SELECT n FROM hot")
            found = cursor.fetchone()[0]
        if found != count:
            sys.exit(f"{count} updates made {found}")
        for connection in [*connections, holder, watcher]:
            connection.close()
        print(f"| {count} | {queued:.2f} | {queued_processor:.2f} | {done:.2f} | {done_processor:.2f} |", flush=True)


def waiting(watcher):
    with watcher.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
        return cursor.fetchone()[0]


def main():
    numbers = lambda text: [int(number) for number in text.split(",") if number]
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--user", default="root")
    parser.add_argument("--idle", type=numbers, default=[0, 1000, 5000, 10000])
    parser.add_argument("--busy", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--waiters", type=numbers, default=[1000, 5000])
    parser.add_argument("--workload", default="oltp_point_select")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before, {options.workload}")
    with connect(options) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS connections")
    sysbench(options, "cleanup")
    sysbench(options, "prepare")
    if options.idle:
        idle_connections(options)
    if options.waiters:
        waiters(options)
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
