/* Cursors of prepared statements through MariaDB's client library, on the server whose socket is the argument: prints what
 * the library makes of the answers. */

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 64 };

static MYSQL *connection;
static char value[VALUE_BYTES], text[VALUE_BYTES];
static unsigned long lengths[2];
static my_bool nulls[2];

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void run(const char *sql)
{
    if (mysql_query(connection, sql))
        fail(sql, mysql_error(connection));
    MYSQL_RES *result = mysql_store_result(connection);
    if (result)
        mysql_free_result(result);
    printf("%s\n", sql);
}

static void show_status(MYSQL_STMT *statement)
{
    (void)statement;
    printf("  cursor %d, last row sent %d\n", (connection->server_status & SERVER_STATUS_CURSOR_EXISTS) != 0,
        (connection->server_status & SERVER_STATUS_LAST_ROW_SENT) != 0);
}

static MYSQL_STMT *prepare(const char *sql, unsigned long rows_at_a_time)
{
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    unsigned long type = CURSOR_TYPE_READ_ONLY;
    if (mysql_stmt_attr_set(statement, STMT_ATTR_CURSOR_TYPE, &type) ||
        mysql_stmt_attr_set(statement, STMT_ATTR_PREFETCH_ROWS, &rows_at_a_time))
        fail("cursor", mysql_stmt_error(statement));
    if (mysql_stmt_prepare(statement, sql, strlen(sql)))
        fail(sql, mysql_stmt_error(statement));
    printf("prepare %s, %lu rows at a time\n", sql, rows_at_a_time);
    return statement;
}

static int open_cursor(MYSQL_STMT *statement)
{
    if (mysql_stmt_execute(statement)) {
        printf("  error %u: %s\n", mysql_stmt_errno(statement), mysql_stmt_error(statement));
        return 0;
    }
    printf("  executed, %u columns\n", mysql_stmt_field_count(statement));
    show_status(statement);
    if (!mysql_stmt_field_count(statement)) {
        printf("  %llu rows changed\n", (unsigned long long)mysql_stmt_affected_rows(statement));
        return 0;
    }
    MYSQL_BIND binds[2] = {
        {.buffer_type = MYSQL_TYPE_STRING, .buffer = value, .buffer_length = VALUE_BYTES, .length = &lengths[0],
            .is_null = &nulls[0]},
        {.buffer_type = MYSQL_TYPE_STRING, .buffer = text, .buffer_length = VALUE_BYTES, .length = &lengths[1],
            .is_null = &nulls[1]},
    };
    if (mysql_stmt_bind_result(statement, binds))
        fail("bind", mysql_stmt_error(statement));
    return 1;
}

/* Fetches so many rows, or all with -1. */
static void fetch(MYSQL_STMT *statement, int rows)
{
    for (int row = 0; row != rows; row++) {
        int ended = mysql_stmt_fetch(statement);
        if (ended == 1)
            printf("  error %u: %s\n", mysql_stmt_errno(statement), mysql_stmt_error(statement));
        if (ended)
            break;
        printf("  %.*s", nulls[0] ? 4 : (int)lengths[0], nulls[0] ? "NULL" : value);
        if (mysql_stmt_field_count(statement) > 1)
            printf(" %.*s", nulls[1] ? 4 : (int)lengths[1], nulls[1] ? "NULL" : text);
        printf("\n");
    }
    show_status(statement);
}

int main(int count, char **arguments)
{
    connection = mysql_init(NULL);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (count != 2 || !mysql_real_connect(connection, NULL, "root", "", NULL, 0, arguments[1], 0))
        fail("connect", mysql_error(connection));
    run("CREATE DATABASE c");
    run("USE c");
    run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) DEFAULT CHARSET utf8mb4");
    run("INSERT INTO t VALUES (1, 'grün'), (2, NULL), (3, 'blau'), (4, ''), (5, 'rot'), (6, 'ocker')");
    MYSQL_STMT *all = prepare("SELECT id, v FROM t ORDER BY id", 2);
    for (int round = 0; round < 2; round++)
        if (open_cursor(all))
            fetch(all, -1);
    /* Two cursors at once, while the table changes: a cursor has the rows of its beginning. */
    MYSQL_STMT *other = prepare("SELECT v FROM t WHERE id > 3 ORDER BY id DESC", 1);
    open_cursor(all);
    fetch(all, 3);
    open_cursor(other);
    fetch(other, 1);
    run("INSERT INTO t VALUES (7, 'neu')");
    run("DELETE FROM t WHERE id = 4");
    fetch(all, 1);
    run("COMMIT");
    fetch(other, -1);
    fetch(all, -1);
    /* The library fetches no more, so the next execution finds the cursor open. */
    open_cursor(all);
    fetch(all, 1);
    open_cursor(all);
    fetch(all, 1);
    if (mysql_stmt_free_result(all))
        fail("free", mysql_stmt_error(all));
    open_cursor(all);
    mysql_stmt_reset(all);
    mysql_stmt_close(other);
    MYSQL_STMT *none = prepare("SELECT id FROM t WHERE id > 100", 5);
    open_cursor(none);
    fetch(none, -1);
    MYSQL_STMT *change = prepare("UPDATE t SET v = 'x' WHERE id < 3", 5);
    open_cursor(change);
    MYSQL_STMT *show = prepare("SHOW TABLES", 1);
    if (open_cursor(show))
        fetch(show, -1);
    MYSQL_STMT *broken = prepare("SELECT id, (SELECT id FROM t AS x WHERE x.id <> t.id) FROM t", 1);
    if (open_cursor(broken))
        fetch(broken, -1);
    MYSQL_STMT *locking = prepare("SELECT id, v FROM t WHERE id < 3 ORDER BY id FOR UPDATE", 1);
    if (open_cursor(locking))
        fetch(locking, -1);
    run("TRUNCATE TABLE t");
    open_cursor(all);
    fetch(all, -1);
    run("DROP DATABASE c");
    mysql_close(connection);
    return 0;
}
