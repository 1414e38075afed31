# The modes that change how the text of statements is read.
SELECT @@sql_mode;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40) DEFAULT 'd\\e', w VARCHAR(40) COMMENT 'it''s \\ here');
INSERT INTO t VALUES (1, 'a\\b', 'it''s'), (2, '{"a":"","b":"it''s"}', "x""y"), (3, 'a%', 'a_');

# Backslashes.
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
SELECT 'a\b', 'a\', LENGTH('\\'), 'it''s', "q""q";
INSERT INTO t VALUES (10, 'c:\dir\', '\');
INSERT INTO t (id, v, w) VALUES (11, '\''', "\"), (12, '\n', '\\');
SELECT * FROM t WHERE id >= 10 ORDER BY id;
SELECT id FROM t WHERE v = 'a\b';
SELECT id FROM t WHERE v = '\''' OR 1 = 0 -- '
;
SELECT id FROM t WHERE v IN ('\', 'c:\dir\', 'a\b') ORDER BY id;
SELECT id FROM t WHERE v LIKE 'a\%';
SELECT id FROM t WHERE v LIKE 'a|%' ESCAPE '|';
SELECT id FROM t WHERE w LIKE '\' ORDER BY id;
SELECT 'a\%' LIKE 'a\%', 'a%' LIKE 'a\%', 'ab' LIKE 'a\%', 'a\b' LIKE 'a\%', '\' LIKE '\';
SELECT 'a\%b' AS `x\y`;
UPDATE t SET w = 'e:\' WHERE id = 12;
DELETE FROM t WHERE w = 'e:\';
SELECT CONCAT('\', 'n'), REPLACE('a\b', '\', '/'), QUOTE('a\b');
SET @a = 'x\';
SELECT @a, LENGTH(@a);
PREPARE s FROM 'SELECT ''\'', ?';
EXECUTE s USING @a;
SET sql_mode = '';
EXECUTE s USING @a;
SELECT 'a\\b', '\'';
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
CREATE TABLE u (a VARCHAR(20) DEFAULT '\' COMMENT 'c\d', b VARCHAR(9) DEFAULT 'it''s');
INSERT INTO u () VALUES ();
SELECT * FROM u;
SHOW COLUMNS FROM u;
SHOW TABLES LIKE '\_';
DO '\';
SELECT 1 /* '\' */ + 1;
SET sql_mode = '';
SELECT * FROM u;
DROP TABLE u;

# Double quotes.
SET sql_mode = 'ANSI_QUOTES';
SELECT "id", "v" FROM "t" WHERE "id" = 1;
SELECT "t"."id" AS "a b", 'x' "c" FROM "t" WHERE "v" = 'a\\b';
SELECT 'a' "b";
SELECT "nosuch" FROM t;
SELECT "a";
INSERT INTO "t" ("id", "v") VALUES (20, '"'), (21, 'a"b');
INSERT INTO t SET "id" = 23, "v" = 'w';
SELECT id, v FROM t WHERE id >= 20 ORDER BY "id";
SELECT id FROM t WHERE v IN ('"', 'a"b') ORDER BY id;
UPDATE "t" SET "v" = 'new' WHERE "id" = 20;
SELECT `id`, "id" FROM t WHERE id = 20;
CREATE TABLE "q""r" ("a""b" INT PRIMARY KEY, "c`d" VARCHAR(9) DEFAULT 'x', KEY "k" ("c`d"));
ALTER TABLE "q""r" ADD COLUMN "e" INT;
INSERT INTO "q""r" ("a""b", "c`d") VALUES (1, 'one');
SELECT "a""b", "c`d" FROM "q""r";
SELECT `a"b`, `c``d` FROM `q"r`;
SHOW COLUMNS FROM "q""r";
DROP TABLE "q""r";
SELECT COUNT(*) "n" FROM t GROUP BY "id" HAVING "n" > 1;
SET @b = "id";
SHOW TABLES LIKE "t";
SELECT 1 AS "a", 2 AS 'b';
SET sql_mode = '';
SELECT "id" FROM t WHERE "id" = 'id' LIMIT 1;

# Pipes.
SELECT 1 || 0, 0 || 0, NULL || 1, 'a' || 'b';
SET sql_mode = 'PIPES_AS_CONCAT';
SELECT 1 || 0, 0 || 0, NULL || 1, 'a' || 'b';
SELECT 'a' || 'b' || 'c', 1 + 2 || 3, 2 * 2 || 3, -1 || 2, 'a' || 1 + 1, 1 || 2 = 12;
SELECT id, v || '-' || id FROM t WHERE v || w = 'a%a_';
SELECT 1 OR 0, 0 OR 0;
SELECT 'x' || 'y' LIKE 'xy', NOT 'a' || 'b';
SET sql_mode = '';
SELECT 'a' || 'b';
SELECT id, v || '-' || id FROM t WHERE v || w = 'a%a_';

# NOT.
SELECT NOT 1 BETWEEN -5 AND 5, NOT 0 + 1, NOT 1 = 0, 1 IS NOT NULL, 1 NOT IN (2), 'a' NOT LIKE 'b';
SET sql_mode = 'HIGH_NOT_PRECEDENCE';
SELECT NOT 1 BETWEEN -5 AND 5, NOT 0 + 1, NOT 1 = 0, 1 IS NOT NULL, 1 NOT IN (2), 'a' NOT LIKE 'b';
SELECT id FROM t WHERE NOT id = 1 AND id < 4 ORDER BY id;
SELECT NOT NULL, NOT EXISTS (SELECT 1 FROM t WHERE id = 1), 5 NOT BETWEEN 1 AND 2, NOT NOT 1;

# Combined modes.
SET sql_mode = 'ANSI';
SELECT @@sql_mode;
SELECT "id" || '-' FROM "t" WHERE "id" = 1;
SET sql_mode = 'MYSQL40';
SELECT @@sql_mode;
SET sql_mode = 'POSTGRESQL';
SELECT @@sql_mode;
SET sql_mode = 'DB2';
SELECT @@sql_mode;
SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES';
SELECT "id", '\' || "v" FROM "t" WHERE "v" = 'a\b';
SELECT COUNT (*) FROM t WHERE id < 3;
SET sql_mode = DEFAULT;
SELECT !0, !5, !1 + 1, -!1;
SELECT 5--1, 5 - -1, 5--'1', 5 --'1' + 1;
SELECT 5--/* c */1, 5 --/* c */ 1;
SELECT 1 --
;
SELECT '\a', '\f', '\v', '\x41', '\%', '\_', 'a\0b' = 'a';
SET @a = 'a\a';
SELECT @a;
