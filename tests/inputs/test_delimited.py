"""Delimited text: the suggested line reads every row, and what it leaves out or cannot know is in a note."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_chains.profiles.inside.program import profile_file
from code_chains.profiles.report import notes_of

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def looked_at(content: str, name: str = "a.csv") -> tuple[Any, str]:
    """Return the frame that the suggested line reads, and the notes."""
    Path(name).write_text(content, newline="")
    profile: Any = profile_file(name)
    names: dict[str, Any] = {}
    if profile["format"] != "text":
        exec("\n".join(profile["read"]), names)
    return names.get("df"), "\n".join(notes_of(name, profile))


READ = {
    "a row that is too long": ("a,b\n1,2\n3,4,5\n6,7\n", [[1, 2, None], [3, 4, 5], [6, 7, None]]),
    "a field beyond the header in each row": ("r,n\nnorth,10,x\nsouth,32,y\n", [["north", 10, "x"], ["south", 32, "y"]]),
    "labels as R writes them": ('"x";"y"\n"p";1;2\n"q";3;4\n', [["p", 1, 2], ["q", 3, 4]]),
    "empty fields at the end of some rows": ("a,b\n1,2\n3,4,\n", [[1, 2], [3, 4]]),
    "a header with a field too many": ("a,b,c\n1,2\n3,4\n", [[1, 2, None], [3, 4, None]]),
    "single quotes": ("a,b\n'x, y',1\n'z',2\n", [["x, y", 1], ["z", 2]]),
    "escaped quotes": ('a,b\n"say \\"hi\\", you",1\n"z",2\n', [['say "hi", you', 1], ["z", 2]]),
    "blanks behind separators": ('a, b, c\n1, "x, y", 3\n2, "z", 4\n', [[1, "x, y", 3], [2, "z", 4]]),
    "backslashes in quotes": ('"a","b"\n"x","\\"\n"y","z"\n', [["x", "\\"], ["y", "z"]]),
    "inches": ('item\tsize\npipe\t5"\n"rod\t7"\nbar\t9"\n', [["pipe", '5"'], ['"rod', '7"'], ["bar", '9"']]),
    "a quote without an end": ('a,b\n1,x\n2,"y\n3,z\n', [[1, "x"], [2, '"y'], [3, "z"]]),
    "a rare separator": ("a~b~c\n1~2~x\n3~4~y\n", [[1, 2, "x"], [3, 4, "y"]]),
    "values that begin with a hash": ("tag,n\n#1,5\n#2,6\n", [["#1", 5], ["#2", 6]]),
    "a hash within values, below a comment": ("# made by x\nlang,n\nC#,5\nF#,6\n", [["C#", 5], ["F#", 6]]),
    "a mark of Excel in a table of very many columns": (
        ",".join(f"the very long name of column {n}" for n in range(99)) + "\nx" + ",<5" * 98 + "\n#N/A" + ",7" * 98 + "\n",
        [["x", *["<5"] * 98], ["#N/A", *["7"] * 98]],
    ),
    "fields beyond a header of long names": (
        f"{'a' * 500},{'b' * 500}\n1,2,3\n4,5,6\n7,8,9\n", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    ),
    "a region called NA": ("region,n\nNA,5\nEMEA,7\nNA,2\n", [["NA", 5], ["EMEA", 7], ["NA", 2]]),
    "a garage that is None": ("id,g,p\n1,None,5\n2,Attached,NA\n", [[1, "None", 5], [2, "Attached", None]]),
    "decimal commas beside thousands": (
        'a,b\n"1,5","1,234"\n"2,25","12,345"\n"3,0","7"\n',
        [[1.5, 1234], [2.25, 12345], [3, 7]],
    ),
    "codes with a letter": ("nr,code\n1,00123\n2,12E4\n3,77\n", [[1, "00123"], [2, "12E4"], [3, "77"]]),
    "nulls of MySQL": ("id\tn\n1\t\\N\n2\tx\n", [[1, None], [2, "x"]]),
    "a comment with a comma": ("t,v\n0,1.5\n# restart, battery\n1,1.6\n", [[0, 1.5], [1, 1.6]]),
    "lines that end with a carriage return": ("a,b\r1,2\r3,4\r", [[1, 2], [3, 4]]),
    "the header among the rows": ("a,b\nx,1\na,b\ny,2\n", [["x", 1], ["y", 2]]),
    "two empty lines among the rows": ("a,b\n1,2\n\n\n3,4\n", [[1, 2], [3, 4]]),
    "decimal commas in one column": ("price\n1,50\n2,25\n", [[1.5], [2.25]]),
    "dates without a comma": ("d,n\nJan 5 2024,1\nFeb 6 2024,2\n", [["2024-01-05", 1], ["2024-02-06", 2]]),
    "dates of Oracle": ("d,n\n05-JAN-24,1\n06-FEB-24,2\n", [["2024-01-05", 1], ["2024-02-06", 2]]),
    "months in names": ("name,n\nMay Smith,1\nApril Jones,2\n", [["May Smith", 1], ["April Jones", 2]]),
    "versions": ("version,n\n1.10,3\n1.9,4\n", [["1.10", 3], ["1.9", 4]]),
    "numbers of rows, divided by spaces, as R writes them": (
        '"city" "n"\n"1" "Oslo" 3\n"2" "Rome" 5\n"3" "New York" 7\n',
        [[1, "Oslo", 3], [2, "Rome", 5], [3, "New York", 7]],
    ),
    "spaces within quotes": (
        '10.0.0.1 - [1] "GET /a" 200\n10.0.0.2 - [2] "GET /b" 404\n10.0.0.3 bob [3] "GET /" 200\n10.0.0.4 - [4] "PUT /" 9\n',
        [["10.0.0.1", "-", "[1]", "GET /a", 200], ["10.0.0.2", "-", "[2]", "GET /b", 404],
         ["10.0.0.3", "bob", "[3]", "GET /", 200], ["10.0.0.4", "-", "[4]", "PUT /", 9]],
    ),
    "a quote that stands for the value above": ('r,s\nN,1\n",2\nS,3\n",4\n', [["N", 1], ['"', 2], ["S", 3], ['"', 4]]),
    "numbers of India": ('c,n\nA,"1,24,42,373"\nB,"31,24,458"\n', [["A", 12442373], ["B", 3124458]]),
    "a remark with a number": ("r,n\nN,1\nS,2\nSource: own survey, 2024\n", [["N", 1], ["S", 2]]),
    "spaces below lines of a head": (
        "Device: X7\nDay: 5\n\nt  U(V)\n0.0   1.20\n0.1   1.25\n0.2   1.31\n", [[0, 1.2], [0.1, 1.25], [0.2, 1.31]]
    ),
    "a survey with two rows of questions": (
        'Q1,Q2,Q3\nHow old?,How tall?,Where do you live?\n"{""id"":1}","{""id"":2}","{""id"":3}"\n'
        "34,180,Oslo\n27,172,Rome\n51,169,Bonn\n",
        [[34, 180, "Oslo"], [27, 172, "Rome"], [51, 169, "Bonn"]],
    ),
    "a row of unknown values": (
        "name,start,end\nX,at last,open end\nA,1,2\n", [["X", "at last", "open end"], ["A", "1", "2"]]
    ),
    "a multi-line title in quotes": (',,\n,"Report\nof May",\nid,day,n\n1,2024-05-01,5\n', [[1, "2024-05-01", 5]]),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_every_value_is_read(case: str) -> None:
    content, rows = READ[case]
    frame, _ = looked_at(content)
    cells = frame.astype(object).where(frame.notna(), None).values.tolist()
    assert [[str(cell)[:10] if hasattr(cell, "year") else cell for cell in row] for row in cells] == rows


NAMES = {
    "groups above": ("Region,Sales,,Costs,\n,2022,2023,2022,2023\nN,1,2,3,4\n", "Sales 2023"),
    "groups above full names": (",Sales,,Costs,\nRegion,Sold,Back,Fixed,Other\nN,1,2,3,4\n", "Sales Back"),
    "a survey": ("Respondent,Q1,Q2\n,Open,Open\n1,good,bad\n2,fine,poor\n", "Q1 Open"),
    "years": (",2019,2020\nA,1,2\nB,4,5\n", "2019"),
    "groups of two above all names": (
        "Person,,Place,\nfirst,last,road,town\nAnn,Lee,Main,Oslo\nBo,Ray,Side,Lund\n",
        "Place town",
    ),
    "groups above a blank line and all names": (
        "Day,To,Cost,\n,,,\n,,Rail,Air\n1,Oslo,2,3\n2,Lund,4,5\n",
        "Cost Air",
    ),
    "labels without a name": (",name,town\na,Ann,Oslo\nb,Bo,Lund\n", "town"),
    "numbers in turn": (",0,1\nx,1.5,2\ny,2.5,3\n", "1"),
    "numbers from one on": (",1,2\nA,0.1,0.2\nB,0.5,0.6\n", "2"),
    "months": ("item,2024-01-01,2024-02-01\nx,4,5\ny,6,7\n", "2024-02-01"),
    "names in a comment": ("# made by x\n# t,v\n0,1.5\n1,1.6\n", "t"),
    "names in a comment, divided by spaces": ("% t v w\n0 1.5 2\n1 1.6 2\n2 1.7 2\n", "w"),
    "a column called #": ("#;name\n1;Ann\n2;Bob\n", "#"),
    "notes above": ("at,the,,of\nor,merging,,cells\nName,Age,Kids,Born\nAnn,30,2,1990\n", "Age"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_in_several_rows_are_found(case: str) -> None:
    content, name = NAMES[case]
    assert name in looked_at(content)[0].columns


SAID = {
    "a line of dashes": ("a,b\n---,---\n1,2\n", "1 line left out: line 2 (a line of dashes"),
    "a remark with a comma": ("a,b,c\n1,2,3\n\nSource: x\nMore, info\n", "2 lines left out: lines 4, 5 (a remark"),
    "a total": ("r,n\nN,1\nS,2\nTotal,3\n", '1 line left out: line 4 (a total: "Total")'),
    "a title": ("Sales of May\nr,n\nN,1\n", "1 line left out: line 1 (above the table"),
    "a comment": ("r,n\nN,1\n# checked\nS,2\n", "1 line left out: line 3 (comments"),
    "units": ("t,v\ns,km\n1,2\n3,4\n", "1 line left out: line 2 (units"),
    "the header once more": ("a,b\nx,1\na,b\ny,2\n", "line 3 (the header once more"),
    "fields beyond the header": ("a,b\n1,2\n3,4,5\n", "1 row with more fields than the header (line 3)"),
    "one of many rows": ("a,b\n" + "1,2\n" * 99 + "1,2,3\n", "(line 101): what is beyond is left out"),
    "very many of them": ("a,b\n1,2\n" + "x," * 99 + "x\n", "what is beyond is kept in columns without a name"),
    "a header among rows": ("RUN,a\n0,1\n1,2\nRUN,b_c\n0,5\n", "line 4 may be the header of another table"),
    "a title above the header once more": ("r,n,m\nN,1,2\n2023,,\nr,n,m\nS,3,4\n", '(above the header: "2023")'),
    "a header of two rows": ("R,S,\n,1999,2000\nN,1,2\n", "the names of the columns are in 2 rows"),
    "texts among numbers": (
        "a\n" + "".join(f"{n}\n" for n in range(18)) + "about 7\n",
        '1 of 19 are no numbers, such as "about 7"',
    ),
    "marks of missing values": ("a,b\n1,x\n-,y\n", '1 of 2 missing in "a", such as "-"'),
    "a word that may mean missing": ("r,n\nNA,1\nEU,2\n", '"NA" in "r" stays a text'),
    "commas in numbers": ('n,v\nA,"1,5"\nB,"2,25"\n', "commas in numbers are read as decimal separators"),
    "no certain header": ("red,apple\ngreen,pear\nred,cherry\n", "whether the first row holds names is not certain"),
    "days that may be months": ("d\n01/02/2024\n03/04/2024\n", "which they do not prove"),
    "years of two digits": ("d,n\n24/01/05,1\n23/12/07,2\n", "years of two digits"),
    "a comma that may be a decimal": ("Temp\n1,5\n2,7\n", 'whether "," divides fields is not certain'),
    "names that may be shifted": ("mpg,cyl\nA,21,6\nB,22,4\n", "a name may belong to the column on its right"),
    "dates in two orders": ("d,n\n13/01/2024,1\n01/13/2024,2\n", "in two orders"),
    "repeated rows": ("a,b\n1,2\n1,2\n", "1 of 2 rows repeat another one"),
    "totals among details": ("r,n\nN,1\nTotal N,1\nS,2\nW,3\n", "1 row is a total among details"),
    "a total without a word": ("r;n;m\nN;1;2\nS;2;3\nW;4;5\n;7;10\n", "the last row has the sums of the others"),
    "an average": ("r;n\nN;1\nS;2\nW;3\nMittelwert;2\n", '1 row is an average among details ("Mittelwert"'),
    "what may be versions": ("v,n\n1.10,3\n1.9,4\n", "1.10 is read as a number: read it as text if"),
    "numbers that are too long": ("id,n\n1,12345678901234567.25\n2,3.10\n", "other long numbers are rounded"),
    "spellings": ("r,n\nnorth,1\nNorth ,2\n", "several spellings of the same"),
    "blanks behind texts": ("n,town\n1,Bonn \n2,Trier \n", '"town" has blanks around texts such as "Bonn "'),
    "a number that means missing": ("d,t\n1,12\n2,-999\n3,14\n", "-999 stands 1 times"),
    "texts among few numbers": ("n,age\nA,14\nB,fifteen\nC,16\n", '1 of 3 are no numbers, such as "fifteen"'),
    "numbers in several currencies": ("p\n$3.50\n€2.00\n£4.00\n$1.20\n", "written in several ways, so it stays text"),
    "a share without a sign": ("n,s\na,12%\nb,0.5\nc,33%\n", "0.5 has no unit, and others have %"),
    "codes that look like powers": ("part,code\na,1E5\nb,2E7\n", "1E5 is read as a number: read it as text if"),
    "dates of several forms": ("n,d\n1,2024-01-05\n2,05.01.2024\n", "its dates are written in several ways"),
    "dates of another language": ("d;n\n5. Januar 2024;1\n6. März 2024;2\n", "not known, such as 5. Januar"),
    "months of years": ("m,n\nJan-24,1\nFeb-24,2\n", "not known, such as Feb-24"),
    "a name that another delimiter divides": ("a;b,c\n1,3\n4,6\n", 'whether "a;b" is one name is not certain'),
    "days that are counted": ("date,n\n45296,1\n45297,2\n", '"date" may be serial days: pd.to_datetime'),
    "seconds that are counted": ("date,n\n1704441600,1\n1704445200,2\n", '"date" may be seconds since 1970'),
    "units in a column": ("n,w,unit\na,1.5,kg\nb,300,g\n", 'several units ("kg", "g")'),
    "a balance below": ("d,t,n\n1,a,5\n2,b,6\nEndsaldo,,11\n", '(a total: "Endsaldo")'),
    "durations": ("n,t\na,1:30:00\nb,0:42:17\n", "1:30:00 and others stay text: pd.to_timedelta"),
    "thousands and millions": ("n,v\na,1.2K\nb,3M\nc,900\n", "letters such as K and M"),
    "formulas that are texts": ('id,n\n="007",1\n="008",2\n', "str.strip('=\"')"),
    "marks for the value above": ("r,s,n\nN,a,1\n〃,b,2\n", "may stand for the value above"),
    "headings among rows": ("i,p,q\nFruit,,\napple,1,3\npear,2,1\n", '1 row has a text in "i" and nothing else ("Fruit")'),
    "blank labels": ("r,s,n\nN,a,1\n,b,2\nS,c,3\n,d,4\n", 'blank cells of "r" may stand for the label above'),
    "tables beside each other": ("a,n,,b,m\nx,1,,y,2\nz,3,,w,4\n", "two tables may stand beside each other"),
    "rows that are columns": ("Name,Ann,Bo\nBorn,1987,1991\nCity,Bonn,Oslo\nPay,32.5,28\n", 'df.set_index("Name").T'),
    "subtotals": ("r,s,n\nN,a,1\nN,b,2\nN total,,3\nS,c,4\n", '1 row is a total among details ("N total"'),
    "a total in a later column": ("n,m,f\n1,2,a\n3,4,b\n9,9,total\n5,6,c\n", 'a total among details ("total" in "f")'),
    "columns that touch": ("IDNAME    PAY\n01Ann     125\n02Bo      031\n03Cy      110\n", "may touch each other"),
    "a share above 100": ("n,share %\na,12\nb,130\n", "not between 0 and 100"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_left_out_or_doubtful_is_said(case: str) -> None:
    content, note = SAID[case]
    assert note in looked_at(content)[1]


PADDED = {
    "lines between": ("id | town | day\n1 | Bonn | 03/04/2023\n2 | Trier | 30/04/2023\n", "|"),
    "semicolons between": ("id ; town ; day\n1 ; Bonn ; 03/04/2023\n2 ; Trier ; 30/04/2023\n", ";"),
    "several blanks": ("id  ,  town  ,  day\n1  ,  Bonn  ,  2023-04-03\n2  ,  Trier  ,  2023-04-30\n", ","),
}


@pytest.mark.parametrize("case", PADDED)
def test_blanks_around_separators_are_no_part_of_names_texts_or_days(case: str) -> None:
    frame = looked_at(PADDED[case][0])[0]
    assert frame["town"].tolist() == ["Bonn", "Trier"]
    assert frame["day"].dt.month.tolist() == [4, 4]


def test_notes_have_the_names_that_the_line_gives_columns() -> None:
    """Of texts in quotes the blanks before separators stay, and those of names are stripped afterwards."""
    frame, notes = looked_at('id , town , n\n1 , "Bonn, West" , 3\n2 , "Trier" , 4\n')
    assert list(frame.columns) == ["id", "town", "n"]
    assert '"town" has blanks around texts' in notes


LATE = {
    "a leading zero": ("".join(f"{n},{1000 + n}\n" for n in range(2500)), "7,00017\n", "00017"),
    "a word": ("".join(f"{n},DE{n % 3}\n" for n in range(2500)), "7,NA\n", "NA"),
    "another unit": ("".join(f"{n},{n % 90} kg\n" for n in range(2500)), "7,500 g\n", "500 g"),
}


@pytest.mark.parametrize("case", LATE)
def test_what_comes_late_counts_as_well(case: str) -> None:
    rows, last, value = LATE[case]
    frame, _ = looked_at(f"nr,v\n{rows}{last}")
    assert frame["v"].iloc[-1] == value


def test_a_late_day_decides_about_the_order() -> None:
    days = "".join(f"{n % 12 + 1:02}/{n % 11 + 1:02}/2023\n" for n in range(2500))
    frame, notes = looked_at(f"d\n{days}25/12/2023\n")
    assert (frame["d"].iloc[-1].month, "do not prove" in notes) == (12, False)


def test_a_plain_table_needs_no_note() -> None:
    assert looked_at("date,region,n\n2024-01-01,N,5.0\n2024-01-02,S,5.9\n")[1] == ""


@pytest.mark.parametrize("name", ["a.py", "a.md", "a.log", "a.txt"])
def test_text_that_no_separator_divides_is_no_table(name: str) -> None:
    assert looked_at("import os\nprint(1, 2)\nx = [1, 2, 3]\n", name)[0] is None


def test_a_table_has_any_suffix() -> None:
    assert looked_at("a;b\n1;2\n3;4\n", "a.ssv")[0].shape == (2, 2)


def test_more_columns_than_can_be_looked_at_are_counted() -> None:
    Path("a.csv").write_text("1," * 20_000 + "1\n")
    assert "20,001 columns" in str(profile_file("a.csv"))


cell = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(cell, min_size=2, max_size=5), min_size=1, max_size=12))
def test_no_row_is_lost_without_a_note(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["k", "v"], *(["1", "x"], ["2", "y"]), *rows])
    frame, notes = looked_at(text.getvalue())
    filled = sum(any(map(str.strip, row)) for row in rows)
    assert frame is not None
    assert len(frame) >= 2 + filled or "left out" in notes
