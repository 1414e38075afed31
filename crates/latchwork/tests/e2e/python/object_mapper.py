"""SQLAlchemy against the server whose socket is the first argument: tables from classes, objects in and out."""

import datetime
import decimal
import sys

from sqlalchemy import Column, Date, DateTime, Float, Integer, Numeric, String, Text, create_engine, func, inspect
from sqlalchemy.orm import declarative_base, sessionmaker

address = f"mysql+pymysql://root@localhost/{{}}?unix_socket={sys.argv[1]}&charset=utf8mb4"
with create_engine(address.format("")).connect().execution_options(isolation_level="AUTOCOMMIT") as bare:
    bare.exec_driver_sql("CREATE DATABASE mapped")

engine = create_engine(address.format("mapped"))
Base = declarative_base()


class Person(Base):
    __tablename__ = "people"
    id = Column(Integer, primary_key=True)
    name = Column(String(40), nullable=False, index=True)
    email = Column(String(80), unique=True)
    born = Column(Date)
    seen = Column(DateTime)
    balance = Column(Numeric(12, 2))
    weight = Column(Float)
    about = Column(Text)


Base.metadata.create_all(engine)
Base.metadata.create_all(engine)
Session = sessionmaker(bind=engine)
session = Session()
people = [
    Person(
        name=f"person {n % 10}",
        email=f"{n}@example.org",
        born=datetime.date(1990, 1, 1) + datetime.timedelta(days=n),
        seen=datetime.datetime(2024, 1, 1, 12, 0, n % 60),
        balance=decimal.Decimal(n) / 4,
        weight=n / 8,
        about="ö" * n,
    )
    for n in range(100)
]
session.add_all(people)
session.commit()
assert people[0].id is not None and len({person.id for person in people}) == 100

session = Session()
assert session.query(Person).count() == 100
first = session.query(Person).filter_by(email="7@example.org").one()
assert (first.born, first.balance, first.about) == (datetime.date(1990, 1, 8), decimal.Decimal("1.75"), "ö" * 7)
first.name = "changed"
session.commit()
assert session.query(Person).filter(Person.name == "changed").one().id == first.id
top = session.query(Person).order_by(Person.balance.desc()).limit(3).all()
assert [person.email for person in top] == ["99@example.org", "98@example.org", "97@example.org"]
groups = dict(session.query(Person.name, func.count(Person.id)).group_by(Person.name).all())
assert groups["person 3"] == 10 and groups["person 7"] == 9, groups
assert session.query(func.sum(Person.balance)).scalar() == decimal.Decimal("1237.50")
page = session.query(Person.email).filter(Person.weight.between(1, 2)).order_by(Person.id).all()
assert len(page) == 9
session.query(Person).filter(Person.id == first.id).delete()
session.commit()
assert session.query(Person).filter(Person.name.like("person%")).count() == 99
session.close()

columns = {column["name"]: column for column in inspect(engine).get_columns("people")}
assert set(columns) == {"id", "name", "email", "born", "seen", "balance", "weight", "about"}
assert inspect(engine).get_pk_constraint("people")["constrained_columns"] == ["id"]
indexes = {index["name"] for index in inspect(engine).get_indexes("people")}
assert "ix_people_name" in indexes, indexes
assert inspect(engine).get_table_names() == ["people"]
Base.metadata.drop_all(engine)
assert inspect(engine).get_table_names() == []
print("ok")
