/* Prepared statements through MariaDB's client library, on the server whose socket is the argument: prints the columns and
 * values that it makes of the answers, while the table changes beneath. */

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 8, VALUE_BYTES = 64 };

static MYSQL *connection;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void run(const char *sql)
{
    if (mysql_query(connection, sql))
        fail(sql, mysql_error(connection));
    printf("%s\n", sql);
}

static MYSQL_STMT *prepare(const char *sql)
{
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    if (mysql_stmt_prepare(statement, sql, strlen(sql)))
        fail(sql, mysql_stmt_error(statement));
    printf("prepare %s\n", sql);
    return statement;
}

static void execute(MYSQL_STMT *statement, int id)
{
    MYSQL_BIND parameter = {.buffer_type = MYSQL_TYPE_LONG, .buffer = &id};
    mysql_stmt_bind_param(statement, &parameter);
    if (mysql_stmt_execute(statement)) {
        printf("  error %u\n", mysql_stmt_errno(statement));
        return;
    }
    MYSQL_RES *metadata = mysql_stmt_result_metadata(statement);
    if (!metadata) {
        printf("  %llu rows changed\n", (unsigned long long)mysql_stmt_affected_rows(statement));
        return;
    }
    unsigned columns = mysql_num_fields(metadata);
    if (columns > COLUMNS_MAX)
        fail("columns", "too many");
    MYSQL_BIND binds[COLUMNS_MAX] = {0};
    char values[COLUMNS_MAX][VALUE_BYTES];
    unsigned long lengths[COLUMNS_MAX];
    my_bool nulls[COLUMNS_MAX];
    for (unsigned column = 0; column < columns; column++) {
        MYSQL_FIELD *field = mysql_fetch_field(metadata);
        printf("  %s.%s type %d charset %u\n", field->table, field->name, field->type, field->charsetnr);
        binds[column] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING, .buffer = values[column],
            .buffer_length = VALUE_BYTES, .length = &lengths[column], .is_null = &nulls[column]};
    }
    if (mysql_stmt_bind_result(statement, binds) || mysql_stmt_store_result(statement))
        fail("result", mysql_stmt_error(statement));
    while (mysql_stmt_fetch(statement) == 0) {
        for (unsigned column = 0; column < columns; column++)
            printf("  %.*s", nulls[column] ? 4 : (int)lengths[column], nulls[column] ? "NULL" : values[column]);
        printf("\n");
    }
    mysql_free_result(metadata);
    mysql_stmt_free_result(statement);
}

/* Executes and leaves all rows but the first where they are. */
static void abandon(MYSQL_STMT *statement, int id)
{
    MYSQL_BIND parameter = {.buffer_type = MYSQL_TYPE_LONG, .buffer = &id};
    mysql_stmt_bind_param(statement, &parameter);
    if (mysql_stmt_execute(statement) || mysql_stmt_fetch(statement) || mysql_stmt_free_result(statement))
        fail("abandon", mysql_stmt_error(statement));
}

int main(int count, char **arguments)
{
    connection = mysql_init(NULL);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (count != 2 || !mysql_real_connect(connection, NULL, "root", "", NULL, 0, arguments[1], 0))
        fail("connect", mysql_error(connection));
    unsigned long extended = 0;
    mariadb_get_infov(connection, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended);
    printf("keeps definitions: %d\n", (extended & MARIADB_CLIENT_CACHE_METADATA >> 32) != 0);
    run("CREATE DATABASE c");
    run("USE c");
    run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT) DEFAULT CHARSET utf8mb4");
    run("INSERT INTO t VALUES (1, 'grün', 10), (2, NULL, -20)");
    MYSQL_STMT *by_id = prepare("SELECT * FROM t WHERE id = ?");
    MYSQL_STMT *two = prepare("SELECT v, n FROM t WHERE id >= ? ORDER BY id");
    MYSQL_STMT *update = prepare("UPDATE t SET n = n + 1 WHERE id = ?");
    for (int id = 1; id <= 3; id++) {
        execute(by_id, id);
        execute(two, id);
        execute(update, id);
    }
    abandon(two, 1);
    abandon(two, 1);
    execute(two, 2);
    mysql_stmt_reset(by_id);
    execute(by_id, 1);
    run("ALTER TABLE t MODIFY n VARCHAR(30)");
    execute(two, 1);
    execute(two, 1);
    run("ALTER TABLE t MODIFY n DOUBLE");
    execute(two, 2);
    run("SET NAMES latin1");
    execute(two, 1);
    run("SET NAMES utf8mb4");
    execute(two, 1);
    run("ALTER TABLE t ADD COLUMN added DATE DEFAULT '2020-02-29'");
    /* The library wants a statement with another number of columns prepared again. */
    execute(by_id, 1);
    mysql_stmt_close(by_id);
    MYSQL_STMT *again = prepare("SELECT * FROM t WHERE id = ?");
    execute(again, 1);
    execute(again, 2);
    MYSQL_STMT *value = prepare("SELECT CONCAT('value ', ?) AS value");
    execute(value, 5);
    execute(value, 6);
    run("DROP TABLE t");
    execute(again, 1);
    run("DROP DATABASE c");
    mysql_close(connection);
    return 0;
}
