-- DELETE of one table, written as one of several tables would be.
create table t(a int primary key, b int);
insert into t values (1,1),(2,2),(3,3),(4,4),(5,5);
delete t from t where a=1;
delete x from t as x where x.b=2;
delete from t using t where a=3;
delete x from t where a=4;
delete t from t where t.a=4;
delete t from t where a=5;
delete nosuch from t x;
delete t from t x where a=1;
delete ignore t from t where a=77;
select * from t;
