-- Statements that the fuzzer of queries drew, made small.
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b INT, d DATE, dt DATETIME, d3 DATETIME(3), tm TIME, t2 TIME(2), de DECIMAL(5,2), v VARCHAR(10));
INSERT INTO t VALUES (1, 1, 0, '2024-02-29', '2024-02-29 12:30:00', '2024-02-29 12:30:00.125', '12:30:00', '12:30:00.5', -1.5, 'x'), (2, 2, 1, '1999-12-31', '2000-01-01', '2000-01-01', '-01:02:03', '00:00:00.25', 2, '1'), (3, 4, NULL, NULL, NULL, NULL, NULL, NULL, 5, NULL);
-- A list whose first value is a subquery.
SELECT 1 IN ((SELECT 1), 2), 1 IN ((SELECT 2), 2, 3), NULL NOT IN ((SELECT 1), 1), 1 IN ((SELECT 2 UNION SELECT 1)), (1, 2) IN ((1, 2), (3, 4));
SELECT id FROM t WHERE a IN ((SELECT MAX(a) FROM t), 1) ORDER BY id;
-- What a value shows of its seconds' fraction.
SELECT GREATEST(dt, d3), COALESCE(dt, d3), IF(id = 1, d3, dt), CASE WHEN id < 3 THEN d ELSE d3 END, LEAST(tm, t2) FROM t ORDER BY id;
SELECT dt AS c FROM t UNION SELECT d3 FROM t ORDER BY c;
SELECT d AS c FROM t UNION ALL SELECT dt FROM t ORDER BY c;
SELECT tm AS c FROM t UNION ALL SELECT t2 FROM t ORDER BY c;
-- Times beside texts.
SELECT GREATEST('100:00:00', tm), LEAST('10:00:00', tm), GREATEST(d, '2000-01-01') FROM t ORDER BY id;
SELECT FIELD('', 1e0, 'x'), FIELD('a', 'b', 'a'), FIELD(1, '2', '1x'), FIELD(d, 'x', '2024-02-29') FROM t ORDER BY id;
SELECT STR_TO_DATE('', '%Y-%m-%d'), STR_TO_DATE('1', '%Y-%m-%d'), STR_TO_DATE('70', '%Y-%m-%d'), STR_TO_DATE('123', '%Y-%m-%d'), STR_TO_DATE('2024-1', '%Y-%m-%d'), STR_TO_DATE('2024-02-30', '%Y-%m-%d'), STR_TO_DATE('12:', '%H:%i'), STR_TO_DATE('', '%H'), STR_TO_DATE('2024-02-32', '%Y-%m-%d');
SET sql_mode = 'TRADITIONAL';
SELECT STR_TO_DATE('2024-00-00', '%Y-%m-%d'), STR_TO_DATE('', '%Y-%m-%d'), STR_TO_DATE('2024-02-30', '%Y-%m-%d');
SET sql_mode = DEFAULT;
-- A moment of a day is no span of time, and a date without a day is no moment.
SELECT ADDTIME(dt, TIMESTAMP'2024-01-01 10:00:00'), SUBTIME(tm, DATE'2024-01-01'), ADDTIME('10:00:00', '2024-01-01 10:00:00'), TIMESTAMP('2024-01-01', dt) FROM t ORDER BY id;
SELECT TO_DAYS('0000-00-00'), DATEDIFF('2024-00-01', '2024-01-01'), TIMESTAMPDIFF(MONTH, '0000-00-00', '2024-01-01'), TIMESTAMPDIFF(HOUR, '2024-01-00', '2024-01-01');
-- Digits of variances.
SELECT VARIANCE(a), STD(de), VAR_SAMP(a), STDDEV_SAMP(de * 1.5), VARIANCE(1), STD(v) FROM t;
SELECT VARIANCE(a) + 1, STD(a) FROM t GROUP BY b IS NULL ORDER BY 1;
-- In strict mode the warning of an expression is the error of a change.
INSERT INTO t (id, a) VALUES (4, '' + 1);
INSERT INTO t (id, a) VALUES (4, CAST('x' AS SIGNED));
INSERT INTO t (id, a) SELECT 4, LN(0);
INSERT INTO t (id, a) VALUES (4, DATEDIFF('x', '2024-01-01'));
INSERT INTO t (id, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 'x' + 1;
REPLACE INTO t (id, a) VALUES (4, '1x' + 0);
UPDATE t SET a = a % b;
UPDATE t SET a = 5 WHERE v + 0 = 1;
UPDATE IGNORE t SET a = a WHERE id = 1 AND v + 0 = 1;
DELETE FROM t WHERE id > 5 AND v + 0 = 1;
SELECT COUNT(*), SUM(a) FROM t;
SET sql_mode = '';
INSERT INTO t (id, a) VALUES (4, '1x' + 0);
SET sql_mode = DEFAULT;
-- Columns without a default, though there is no row.
CREATE TABLE n (id INT NOT NULL, a INT NOT NULL, b INT);
INSERT INTO n (id) SELECT id FROM t WHERE NULL;
REPLACE INTO n (b) SELECT 1 FROM t WHERE id < 0;
UPDATE n SET a = DEFAULT;
UPDATE n SET a = DEFAULT WHERE NULL;
INSERT INTO n (id, a) SELECT id, a FROM t WHERE NULL;
-- Two columns of a derived table with the same name.
SELECT 1 FROM (SELECT 1 AS c, 2 AS c) AS x;
SELECT x.a FROM (SELECT id, a, b AS ID FROM t) AS x;
SELECT 1 FROM (SELECT * FROM t AS y, t AS z) AS x;
-- Ranges of an index whose keys hold the beginning of a value.
CREATE TABLE cut (id INT PRIMARY KEY, c VARCHAR(10), e VARBINARY(10), KEY (c(2)), KEY (e(2) DESC));
INSERT INTO cut VALUES (1, 'ab', 'ab'), (2, 'abc', 'abc'), (3, 'a', 'a'), (4, 'b', 'b'), (5, NULL, NULL);
SELECT id FROM cut FORCE INDEX (c) WHERE c > 'ab' ORDER BY id;
SELECT id FROM cut FORCE INDEX (c) WHERE c < 'abz' ORDER BY id;
SELECT id FROM cut FORCE INDEX (e) WHERE e > 'ab' AND e < 'abd' ORDER BY id;
SELECT id FROM cut FORCE INDEX (e) WHERE e < 'abc' OR e > 'abz' ORDER BY id;
SELECT x.id, y.id FROM cut AS x JOIN cut AS y ON x.c < y.c ORDER BY 1, 2;
-- Parts of spans of time, and of dates with one digit.
SELECT EXTRACT(DAY_MINUTE FROM 1), EXTRACT(DAY_MINUTE FROM '1970-01-0'), EXTRACT(DAY_MINUTE FROM '1999-12-3'), EXTRACT(DAY_MINUTE FROM TIME'30:01:02'), EXTRACT(HOUR FROM '26:00:00'), EXTRACT(DAY_HOUR FROM '-26:00:00'), EXTRACT(DAY_SECOND FROM 20240102030405), EXTRACT(DAY_MICROSECOND FROM '1 1:1:1.5'), EXTRACT(MINUTE_SECOND FROM '1999-12-3');
SELECT TIME('12:'), TIME('12:30:'), TIME('1 2:');
-- Values with a sign and without one.
SELECT COALESCE(a, 1) DIV -1, IFNULL(CAST(a AS UNSIGNED), -1), IF(id = 1, -1, CAST(a AS UNSIGNED)) FROM t ORDER BY id;
SET sql_mode = '';
CREATE TABLE o (id INT NOT NULL PRIMARY KEY, a INT NOT NULL);
INSERT INTO o SELECT 1, NULL;
REPLACE INTO o (a, id) SELECT NULL, NULL;
SELECT * FROM o ORDER BY id;
SET sql_mode = DEFAULT;
-- Names of columns in parentheses.
(SELECT 1 FROM t LIMIT 1);
(SELECT MAX(a + 1), EXTRACT(YEAR FROM '2024-01-01') FROM t) UNION (SELECT 1, 2);
((SELECT 'x'));
-- A quotient is stored with the digits of its column.
CREATE TABLE q (id INT PRIMARY KEY, d DECIMAL(20,6), f DOUBLE, v VARCHAR(20));
INSERT INTO q VALUES (1, 1 / 7, 1 / 7, NULL), (2, 0.5 / 7 * 2, 2 / 3, NULL);
UPDATE q SET d = d / 3, v = 'x' WHERE id = 2;
INSERT INTO q (id) VALUES (1) ON DUPLICATE KEY UPDATE v = TIMESTAMPDIFF(MONTH, '2000-01-01', '2024-03-01');
UPDATE q SET v = CAST('abcdef' AS CHAR(3)) WHERE id = 1;
SELECT id, d, v FROM q ORDER BY id;

-- The kind of what STR_TO_DATE reads is that of a constant format; without one it is a moment.
SELECT STR_TO_DATE('11:12:13.5', '%H:%i:%s.%f'), STR_TO_DATE('2024-01-02 11', '%Y-%m-%d %H'), STR_TO_DATE('x', 'x');
SELECT STR_TO_DATE(t, f) FROM (SELECT '2024-01-02' AS t, '%Y-%m-%d' AS f UNION ALL SELECT '2024-01-02 3:04', '%Y-%m-%d %H:%i') d;
-- A subquery with several tables as the number of an interval.
SELECT dt + INTERVAL (SELECT COUNT(*) FROM t AS x, t AS y) HOUR, INTERVAL((SELECT 3), 1, 2, 4), d - INTERVAL (SELECT 1) DAY FROM t ORDER BY id;
SELECT TIMESTAMP('0000-00-00', '100:00:00'), TIMESTAMP('2024-01-01', '100:00:00'), TIMESTAMP('0000-00-00');
SELECT id / 3 AS c FROM t UNION SELECT 3.141593 ORDER BY c;
SELECT id / 3 AS c FROM t UNION ALL SELECT id / 7 FROM t ORDER BY c;
