-- Results that are longer than a packet are NULL, with a warning.
SELECT LENGTH(REPLACE(REPEAT('a', 1000000), 'a', REPEAT('b', 1000000))) AS r;
SELECT LENGTH(REPLACE(REPEAT('a', 3), 'a', REPEAT('b', 1000))) AS r;
SELECT LENGTH(INSERT(REPEAT('a', 15000000), 2, 0, REPEAT('b', 15000000))) AS r;
SELECT LENGTH(HEX(HEX(HEX(HEX(HEX(HEX(HEX(HEX(HEX(HEX(REPEAT('a', 1000000)))))))))))) AS r;
SELECT REPLACE('bb', '', NULL), REPLACE('bb', 'b', NULL), REPLACE(NULL, '', 'x'), REPLACE('bb', NULL, 'x'), REPLACE('bb', '', 'x');
SELECT REPLACE('abcabc', 'b', ''), REPLACE('aaa', 'a', 'aa'), REPLACE('', 'a', 'b'), REPLACE('xyz', 'xyz', '');
