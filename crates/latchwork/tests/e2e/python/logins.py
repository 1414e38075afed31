"""PyMySQL logs in by each method: socket and port of the server, then its accounts as name:password."""

import sys

import pymysql

socket, port = sys.argv[1], int(sys.argv[2])
encrypted = {"ssl": {"check_hostname": False, "verify_mode": "none"}}
over_tcp = {"host": "127.0.0.1", "port": port}
ways = [over_tcp | encrypted, over_tcp, {"unix_socket": socket}]


def login(account, password, options):
    connection = pymysql.connect(user=account, password=password, ssl_disabled="ssl" not in options, **options)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CURRENT_USER()")
        name = cursor.fetchone()[0]
    connection.close()
    return name


for account in sys.argv[3:]:
    # `cold` accounts come first without TLS, so that the server does not know their passwords yet.
    for options in [over_tcp] + ways if account.startswith("cold") else ways + ways:
        try:
            assert login(account, "secret", options) == f"{account}@%"
        except pymysql.MySQLError as error:
            sys.exit(f"{account} {options}: {error}")
        for wrong in ["Secret", ""]:
            try:
                login(account, wrong, options)
            except pymysql.MySQLError as error:
                assert error.args[0] == 1045, (account, options, error)
            else:
                sys.exit(f"{account} got in with the password {wrong!r}")
print("ok")
