/* Arrays of parameters through MariaDB's client library, on the server whose socket is the argument: prints what the
 * library makes of the answers, and what the tables then hold. */

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 8, COLUMNS_MAX = 4 };

static MYSQL *connection;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Runs a statement and prints its rows, or its error. */
static void run(const char *sql)
{
    printf("%s\n", sql);
    if (mysql_query(connection, sql)) {
        printf("  error %u: %s\n", mysql_errno(connection), mysql_error(connection));
        return;
    }
    MYSQL_RES *result = mysql_store_result(connection);
    if (!result)
        return;
    for (MYSQL_ROW row; (row = mysql_fetch_row(result));) {
        for (unsigned field = 0; field < mysql_num_fields(result); field++)
            printf("  %s", row[field] ? row[field] : "NULL");
        printf("\n");
    }
    mysql_free_result(result);
}

/* Executes a statement once with all rows. Cells are texts; "NULL", "DEFAULT" and "IGNORE" are indicators. A column whose
 * kind is 'i' is sent as an INT, 's' as a text, 'd' as a DOUBLE. */
static void bulk(const char *sql, const char *kinds, unsigned rows, const char *cells[])
{
    unsigned columns = strlen(kinds);
    printf("bulk %s, %u rows\n", sql, rows);
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    if (mysql_stmt_prepare(statement, sql, strlen(sql))) {
        printf("  prepare: error %u: %s\n", mysql_stmt_errno(statement), mysql_stmt_error(statement));
        mysql_stmt_close(statement);
        return;
    }
    static int numbers[COLUMNS_MAX][ROWS_MAX];
    static double doubles[COLUMNS_MAX][ROWS_MAX];
    static const char *texts[COLUMNS_MAX][ROWS_MAX];
    static unsigned long lengths[COLUMNS_MAX][ROWS_MAX];
    static char indicators[COLUMNS_MAX][ROWS_MAX];
    MYSQL_BIND binds[COLUMNS_MAX];
    memset(binds, 0, sizeof binds);
    for (unsigned column = 0; column < columns; column++) {
        for (unsigned row = 0; row < rows; row++) {
            const char *cell = cells[row * columns + column];
            indicators[column][row] = !strcmp(cell, "NULL") ? STMT_INDICATOR_NULL :
                !strcmp(cell, "DEFAULT")                    ? STMT_INDICATOR_DEFAULT :
                !strcmp(cell, "IGNORE")                     ? STMT_INDICATOR_IGNORE :
                                                              STMT_INDICATOR_NONE;
            numbers[column][row] = atoi(cell);
            doubles[column][row] = atof(cell);
            texts[column][row] = cell;
            lengths[column][row] = strlen(cell);
        }
        binds[column].u.indicator = indicators[column];
        switch (kinds[column]) {
        case 'i':
            binds[column].buffer_type = MYSQL_TYPE_LONG;
            binds[column].buffer = numbers[column];
            break;
        case 'd':
            binds[column].buffer_type = MYSQL_TYPE_DOUBLE;
            binds[column].buffer = doubles[column];
            break;
        default:
            binds[column].buffer_type = MYSQL_TYPE_STRING;
            binds[column].buffer = texts[column];
            binds[column].length = lengths[column];
        }
    }
    mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &rows);
    if (columns && mysql_stmt_bind_param(statement, binds))
        fail("bind", mysql_stmt_error(statement));
    if (mysql_stmt_execute(statement))
        printf("  error %u: %s\n", mysql_stmt_errno(statement), mysql_stmt_error(statement));
    else {
        const char *info = mysql_info(connection);
        printf("  affected %lld, insert id %llu, info %s\n", (long long)mysql_stmt_affected_rows(statement),
            (unsigned long long)mysql_stmt_insert_id(statement), info ? info : "none");
        /* MariaDB counts the warnings of an UPDATE's first rows again for each row behind them. */
        if (*sql == 'I' || *sql == 'R')
            printf("  warnings %u\n", mysql_stmt_warning_count(statement));
    }
    run("SHOW WARNINGS");
    run("SELECT LAST_INSERT_ID()");
    mysql_stmt_close(statement);
}

#define BULK(sql, kinds, ...) \
    do { \
        const char *cells[] = {__VA_ARGS__}; \
        bulk(sql, kinds, sizeof cells / sizeof *cells / strlen(kinds), cells); \
    } while (0)

static void fresh(void)
{
    run("DROP TABLE IF EXISTS t");
    run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(5) DEFAULT 'dflt', n INT NOT NULL)");
}

static void inserts(void)
{
    fresh();
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "1", "one", "10", "2", "two", "20", "3", "three", "30");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "NULL", "NULL", "40", "IGNORE", "DEFAULT", "50", "DEFAULT", "IGNORE", "60");
    run("SELECT * FROM t ORDER BY id");
    /* A duplicate in the last row. */
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "101", "a", "1", "102", "b", "2", "1", "c", "3");
    BULK("INSERT IGNORE INTO t VALUES (?, ?, ?)", "isi", "103", "a", "1", "1", "b", "2", "104", "c", "3");
    BULK("REPLACE INTO t VALUES (?, ?, ?)", "isi", "103", "r", "1", "1", "r", "2", "105", "r", "3");
    BULK("INSERT INTO t (v, n) VALUES (?, ?)", "si", "x", "1", "toolong", "2", "y", "3");
    BULK("INSERT INTO t (v, n) VALUES (?, ?)", "si", "x", "1", "y", "DEFAULT");
    BULK("INSERT INTO t (v, n) VALUES (?, ? + 1)", "sd", "x", "1.25", "DEFAULT", "2");
    fresh();
    BULK("INSERT INTO t (v, n) VALUES (?, ?), (?, 7)", "sis", "p", "1", "q", "r", "2", "s");
    run("SELECT * FROM t ORDER BY id");
    BULK("INSERT INTO t (id, v, n) VALUES (?, ?, 0) ON DUPLICATE KEY UPDATE v = VALUES(v), n = n + ?", "isi", "1", "dup",
        "100", "200", "new", "1000", "200", "again", "5");
    BULK("INSERT INTO t (id, v, n) SELECT ?, ?, 5", "is", "300", "sel", "301", "sel");
    BULK("INSERT INTO t SET v = ?, n = ?", "si", "set", "1", "set", "2");
    run("SELECT * FROM t ORDER BY id");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "400", "one", "1");
}

static void changes(void)
{
    fresh();
    run("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, 'd', 40)");
    BULK("UPDATE t SET v = ?, n = n + ? WHERE id = ?", "sii", "x", "1", "1", "NULL", "2", "2", "z", "0", "9");
    BULK("UPDATE t SET v = ?, n = ? WHERE id = ?", "sii", "IGNORE", "5", "1", "DEFAULT", "IGNORE", "2", "q", "7", "3");
    run("SELECT * FROM t ORDER BY id");
    BULK("UPDATE t SET id = ? WHERE id = ?", "ii", "10", "1", "3", "2", "11", "4");
    run("SELECT * FROM t ORDER BY id");
    BULK("DELETE FROM t WHERE id = ?", "i", "10", "3", "77");
    run("SELECT * FROM t ORDER BY id");
    BULK("DELETE FROM t WHERE id = ? + ?", "ii", "1", "1", "2", "2");
    run("SELECT * FROM t ORDER BY id");
    BULK("DELETE FROM t WHERE id = ? OR v = ?", "is", "1", "DEFAULT", "2", "IGNORE");
}

static void warnings(void)
{
    fresh();
    run("SET sql_mode = ''");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "1", "one", "10", "2", "toolong", "20", "3", "toolong too", "30");
    BULK("INSERT INTO t VALUES (?, CONCAT(?, ''), ?)", "isi", "4", "one", "10", "5", "toolong", "20", "6", "toolong too", "30");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "iss", "7", "one", "NULL", "8", "two", "2x", "9", "three", "DEFAULT");
    BULK("UPDATE t SET v = ? WHERE id = ?", "si", "toolong", "1", "fits", "2", "toolong", "4", "none", "70");
    BULK("UPDATE IGNORE t SET id = ? WHERE id = ?", "ii", "90", "1", "92", "2", "10", "77");
    BULK("DELETE FROM t WHERE id = CAST(? AS SIGNED)", "s", "1x", "2x", "77");
    run("SELECT * FROM t ORDER BY id");
    run("SET sql_mode = DEFAULT");
}

static void refusals(void)
{
    fresh();
    BULK("SELECT ?", "i", "1", "2");
    BULK("SELECT * FROM t WHERE id = ?", "i", "1", "2");
    BULK("SET @a = ?", "i", "1", "2");
    BULK("DO ?", "i", "1", "2");
    const char *none[] = {"1"};
    bulk("INSERT INTO t (n) VALUES (1)", "", 2, none);
    run("SELECT COUNT(*) FROM t");
}

static void transactions(void)
{
    fresh();
    run("BEGIN");
    run("INSERT INTO t VALUES (1, 'a', 1)");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "5", "e", "5", "1", "dup", "1");
    BULK("INSERT INTO t (id, n) VALUES (?, 1 + ?)", "ii", "6", "6", "1", "1");
    BULK("INSERT INTO t (id, n) VALUES (?, 1 + ?)", "ii", "7", "6", "8", "1");
    BULK("UPDATE t SET id = ? WHERE id = ?", "ii", "20", "7", "20", "8");
    run("SELECT * FROM t ORDER BY id");
    run("ROLLBACK");
    run("SELECT * FROM t ORDER BY id");
    run("SET autocommit = 0");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "5", "e", "5", "6", "f", "6");
    run("ROLLBACK");
    run("SELECT * FROM t ORDER BY id");
    run("SET autocommit = 1");
    run("SHOW STATUS LIKE 'Com_insert'");
    run("SHOW STATUS LIKE 'Com_update'");
    BULK("INSERT INTO t VALUES (?, ?, ?)", "isi", "5", "e", "5", "6", "f", "6");
    BULK("UPDATE t SET n = ? WHERE id = ?", "ii", "20", "5", "20", "6");
    run("SHOW STATUS LIKE 'Com_insert'");
    run("SHOW STATUS LIKE 'Com_update'");
}

int main(int count, char **arguments)
{
    connection = mysql_init(NULL);
    if (count < 2 || !mysql_real_connect(connection, NULL, "root", NULL, NULL, 0, arguments[1], 0))
        fail("connect", mysql_error(connection));
    unsigned long extended = 0;
    mariadb_get_infov(connection, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended);
    printf("offers arrays: %d\n", (extended & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0);
    run("CREATE DATABASE arrays");
    run("USE arrays");
    inserts();
    changes();
    warnings();
    refusals();
    transactions();
    run("DROP DATABASE arrays");
    mysql_close(connection);
    return 0;
}
