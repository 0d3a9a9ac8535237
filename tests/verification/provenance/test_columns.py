"""Whether the data has what a question asks for."""

from __future__ import annotations

import time

import pytest

from code_chains.verification.provenance import Given, unanswered_subject, unnamed_selection

WEATHER = "- file `weather.csv`\n  columns: `day` (date), `temp` (float), `rain` (float)"
SALES = "- file `sales.csv`\n  columns: `date` (date), `region` (text: north, south), `units` (int)"
STAFF = "- file `staff.csv`\n  columns: `name` (text), `born` (date), `salary` (int)"
MENU = "- file `menu.csv`\n  columns: `item` (text), `kcal` (int)"
HARVEST = "- file `harvest.csv`\n  columns: `date` (date), `fruit` (text: plums, pears), `crates` (int)"
RACE = "- file `race.csv`\n  columns: `train` (text), `kmh` (int)"
CLIMATE = "- file `climate.csv`\n  columns: `ts` (date), `sensor` (text), `temp_c` (float)"
SHOP = "- file `shop.csv`\n  columns: `customer_id` (text), `total_eur` (float), `items` (int)"
HIRED = "- file `hired.csv`\n  columns: `name` (text), `dept` (text), `hired` (date)"
METER = "- file `meter.csv`\n  columns: `date` (date), `kwh` (float)"
LEDGER = "- file `ledger.csv`\n  columns: `date` (date), `what` (text: rent, food), `amount` (float)"
PARCELS = "- file `parcels.csv`\n  columns: `id` (text), `kg` (float), `city` (text: Oslo, Bonn)"
ORDERS = "- file `orders.csv`\n  columns: `item` (text), `n` (int), `eur` (float)"
OWNERS = "columns: `owner` (text)"
READ = "import pandas as pd\ndf = pd.read_csv('x.csv', parse_dates=['day', 'date'])\n"


@pytest.mark.parametrize(
    ("query", "profile", "code", "missing"),
    [
        ("What is the mean humidity in weather.csv?", WEATHER, "print(df['rain'].mean())", "humidity"),
        (
            "What was the average humidity?",
            "columns: `day` (date), `rain_mm` (float)",
            "print(df['rain_mm'].mean())",
            "humidity",
        ),
        (
            "What is the mean humidity?",
            WEATHER,
            "print(c.execute('SELECT AVG(rain) FROM w').fetchone())",
            "humidity",
        ),
        ("What is the total discount?", "columns: `order`, `qty`", "print(df['qty'].sum())", "discount"),
        (
            "What is the mean training time?",
            "columns: `day`, `precip`",
            "print(df['precip'].mean())",
            "training",
        ),
        ("What was the highest humidity?", WEATHER, "print(df['rain'].max())", "humidity"),
        ("What was the average air pressure?", WEATHER, "print(df.temp.mean())", "air"),
        ("On which day was the wind strongest?", WEATHER, "print(df.loc[df.rain.idxmax()])", "wind"),
        ("How many hours of sunshine are there?", WEATHER, "print((df.rain == 0).sum())", "sunshine"),
        ("What is the total revenue?", SALES, "print(df['units'].sum())", "revenue"),
        (
            "How much profit did the region north make?",
            SALES,
            "print(df[df.region == 'n'].units.sum())",
            "profit",
        ),
        (
            "Which customer bought the most units?",
            SALES,
            "print(df.groupby('region').units.sum())",
            "customer",
        ),
        ("Which dish is the cheapest?", MENU, "print(df.loc[df.kcal.idxmin(), 'item'])", "price"),
        (
            "What do a soup and a salad cost together?",
            MENU,
            "print(df[df.item == 'soup'].kcal.sum())",
            "price",
        ),
        ("What is the stock of plums worth?", HARVEST, "print(df.crates.sum())", "price"),
        ("How much money did north spend in total?", SALES, "print(len(df[df.region == 'north']))", "price"),
        (
            "What is the average age in each department?",
            HIRED,
            "df['age'] = 2024 - df.hired.dt.year\nprint(df.groupby('dept').age.mean())",
            "age",
        ),
        ("kcal per person, 4 people", HARVEST, "print(df.crates.sum() / 4)", "calories"),
        ("How much protein does the pasta have?", MENU, "print(df[df.item == 'pasta'].kcal)", "protein"),
        (
            "How many hours of sunshine were there in total?",
            WEATHER,
            "print(df[df.rain == 0].day.count())",
            "sunshine",
        ),
        (
            "How many kilograms of plums were picked?",
            HARVEST,
            "print(df[df.fruit == 'plums'].crates.sum())",
            "weight",
        ),
        ("How far did the van go in total?", SALES, "print(df.units.sum())", "distance"),
        ("How many litres were sold in total?", SALES, "print(df.units.sum())", "volume"),
        ("Which item is the heaviest?", ORDERS, "print(df.loc[df.n.idxmax(), 'item'])", "weight"),
        ("Which product sold best?", SALES, "print(df.groupby('region').units.sum())", "product"),
        (
            "Which sensor had the higher average humidity?",
            CLIMATE,
            "d = df[df['ts'] >= '2024']\nprint(d.groupby('sensor')['temp_c'].mean().idxmax())",
            "humidity",
        ),
        (
            "Which country do we earn the most from?",
            SHOP,
            "print(df.groupby('customer_id')['total_eur'].sum().idxmax())",
            "country",
        ),
        (
            "What is the average bonus by department?",
            "columns: `dept` (text), `salary` (int)",
            "print(df.groupby('dept').salary.mean())",
            "bonus",
        ),
        ("What is the average age?", HIRED, "print((now - df['hired']).dt.days.mean() / 365)", "age"),
    ],
)
def test_what_nothing_in_the_data_is_called_is_named(
    query: str, profile: str, code: str, missing: str
) -> None:
    reason = unanswered_subject(query, READ + code, profile)
    assert reason.startswith(f"Nothing in the data is called {missing};")


@pytest.mark.parametrize(
    ("query", "code", "added"),
    [
        (
            "What is the average salary of sales?",
            "print(df[df.dept == 'sales']['start_year'].mean())",
            "start_year",
        ),
        ("How many pages are that?", "print(df['year'].sum())", "year"),
        ("What do we earn on average?", "print(df.customer_id.mean())", "customer_id"),
    ],
)
def test_a_sum_of_what_nobody_adds_up_is_told(query: str, code: str, added: str) -> None:
    profile = "columns: `dept` (text), `start_year` (int), `year` (int), `customer_id` (int)"
    reason = unanswered_subject(query, READ + code, profile)
    assert reason.startswith(f"The program takes a sum or mean of {added}, which the question does not name.")


@pytest.mark.parametrize(
    ("query", "profile", "code"),
    [
        (
            "In which year did they start on average?",
            "columns: `start_year` (int)",
            "print(df.start_year.mean())",
        ),
        ("What is my average heart rate?", "columns: `Pulse` (int)", "print(df['Pulse'].mean())"),
        ("What is the mean temperature?", WEATHER, "print(df.temp.mean())"),
        ("How much rain fell in total?", WEATHER, "print(df.rain.sum())"),
        ("On which day was the rain strongest?", WEATHER, "print(df.loc[df.rain.idxmax(), 'day'])"),
        ("Which region sold most?", SALES, "print(df.groupby('region').units.sum().idxmax())"),
        ("How many units were sold in the north?", SALES, "print(df[df.region == 'north'].units.sum())"),
        (
            "In which month were most units sold?",
            SALES,
            "print(df.groupby(df.date.dt.month).units.sum().idxmax())",
        ),
        ("What is the total revenue at 3 per unit?", SALES, "print(df.units.sum() * 3)"),
        ("Which employee earns most?", STAFF, "print(df.loc[df.salary.idxmax(), 'name'])"),
        ("What is the average age?", STAFF, "print(((now - df.born).dt.days / 365.25).mean())"),
        ("Which item is the cheapest?", ORDERS, "print(df.loc[df.eur.idxmin(), 'item'])"),
        ("What are all items worth?", ORDERS, "print((df.n * df.eur).sum())"),
        ("How much money did we spend on food?", LEDGER, "print(df[df.what == 'food'].amount.sum())"),
        ("What is our profit?", LEDGER, "print(df.amount.sum())"),
        (
            "How much money is in the savings account?",
            "columns: `account`, `balance`",
            "print(df['balance'].sum())",
        ),
        (
            "Is the gym worth it, how often did I go?",
            "columns: `day`, `sessions`",
            "print(df['sessions'].sum())",
        ),
        (
            "How many complaints were about the price?",
            "columns: `id`, `topic`",
            "print((df['topic'] == 'price').sum())",
        ),
        (
            "How many artifacts from the Bronze Age are there?",
            "columns: `what`, `epoch`",
            "print((df['epoch'] == 'Bronze Age').sum())",
        ),
        (
            "How old is the oldest open ticket?",
            "columns: `id`, `created`",
            "print((now - df['created'].min()).days)",
        ),
        (
            "What are the calories of Monday?",
            "columns: `day`, `protein_g`, `fat_g`",
            "print((4 * df['protein_g'] + 9 * df['fat_g']).sum())",
        ),
        (
            "What is the largest lake?",
            "columns: `name` (text), `area` (int)",
            "print(df.loc[df['area'].idxmax(), 'name'])",
        ),
        (
            "What is the total revenue?",
            "columns: `Region` (text), `Umsatz` (int)",
            "print(df['Umsatz'].sum())",
        ),
        ("What is the average age?", "columns: `nombre` (text), `edad` (int)", "print(df['edad'].mean())"),
        ("What is the average grade?", "columns: `pupil` (text), `marks` (int)", "print(df['marks'].mean())"),
        ("Which team won most games?", "columns: `club`, `wins`", "print(df.loc[df.wins.idxmax(), 'club'])"),
        ("What is the mean rain?", WEATHER, "print(c.execute('SELECT AVG(rain) FROM w').fetchone())"),
        ("At 12 euros a box, what are all plums worth?", HARVEST, "print(df.crates.sum() * 12)"),
        ("Each costs 3 euros. What is the stock worth?", SALES, "print(df.units.sum() * 3)"),
        ("How many kcal at 40 kcal per crate?", HARVEST, "print(df.crates.sum() * 40)"),
        ("How old is the oldest person?", STAFF, "print(2024 - df.born.dt.year.min())"),
        ("How many calories has a soup?", MENU, "print(df[df.item == 'soup'].kcal.sum())"),
        ("What do all orders cost?", ORDERS, "print((df.n * df.eur).sum())"),
        ("Which dish has the most kcal?", MENU, "print(df.loc[df.kcal.idxmax(), 'item'])"),
        ("What does a day cost at 3 euros per mm of rain?", WEATHER, "print(df.rain.mean() * 3)"),
        ("How much energy did we use in March?", METER, "print(df[df.date.dt.month == 3].kwh.sum())"),
        ("What is the total revenue of May?", LEDGER, "print(df[df.date.dt.month == 5].amount.sum())"),
        ("How much did food cost?", LEDGER, "print(df[df.what == 'food'].amount.sum())"),
        ("Which parcel is the heaviest?", PARCELS, "print(df.loc[df.kg.idxmax(), 'id'])"),
        ("What do the parcels to Bonn weigh?", PARCELS, "print(df[df.city == 'Bonn'].kg.sum())"),
        ("Who started first?", STAFF, "print(df.loc[df.born.idxmin(), 'name'])"),
        ("How many rows are there?", STAFF, "print(len(df))"),
        (
            "What was the total number of episodes?",
            "columns: `Eps #` (text), `Air Date` (date)",
            "print(len(df['Eps #']))",
        ),
        (
            "Cruz is in which political party?",
            "columns: `who` (text), `Party` (text)",
            "print(df[df['who'] == 'Cruz']['Party'])",
        ),
        ("What other area is there?", "columns: `client` (text), `Area` (text)", "print(df['client'])"),
        ("Who is our biggest spender?", SHOP, "print(df.groupby('customer_id').total_eur.sum().idxmax())"),
        (
            "What pace was the best?",
            "columns: `km` (float), `dur` (text)",
            "print((df['dur'] / df['km']).min())",
        ),
        (
            "What was the average salary by department?",
            "columns: `dept` (text), `pay` (int)",
            "print(df.groupby('dept')['pay'].mean())",
        ),
        ("Which customer paid most?", SHOP, "print(df.groupby('customer_id')['total_eur'].sum().idxmax())"),
        ("How much faster was A than B?", RACE, "print(df.kmh.max() - df.kmh.min())"),
        ("How much older is the oldest than the youngest?", STAFF, "print(df.born.max() - df.born.min())"),
    ],
)
def test_what_the_data_has_under_its_name_or_another_is_not(query: str, profile: str, code: str) -> None:
    assert unanswered_subject(query, READ + code, profile) == ""


@pytest.mark.parametrize(
    "query", [f"What is the average {'a' * 700}?", "value of " * 4000 + "?"], ids=["word", "of"]
)
def test_a_long_question_is_compared_with_columns_once(query: str) -> None:
    start = time.process_time()
    unanswered_subject(query, READ + "print(df['aaaab'].mean())", "columns: `aaaab` (int)")
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("query", "code", "selected"),
    [
        ("Which children have a nut allergy?", "print(df[df['group'] == 'Owls'])", "`group` = `Owls`"),
        (
            "By how much do the women's averages differ?",
            "print([row for row in rows if row['age_group'] == '18-29'])",
            "`age_group` = `18-29`",
        ),
        ("Which was bottled first?", "print(df[df['bottles'] == 18])", "`bottles` = `18`"),
        ("Which were late?", "print(df[df.owner == 'Okoye'])", "`owner` = `Okoye`"),
        (
            "Which hometowns had two?",
            "print(df[df['miss'].str.contains('Brien', na=False)])",
            "`miss` = `Brien`",
        ),
        ("Which were late?", "print(df[df['owner'].isin(['Okoye'])])", "`owner` = `Okoye`"),
        ("What did Lind buy?", "print(df[df['owner'].isin(['Okoye', 'Lind'])])", "`owner` = `Okoye`"),
        ("Which were late?", "print(df[df.owner.str.lower() == 'okoye'])", "`owner` = `okoye`"),
        (
            "Which were late?",
            "print([r for r in rows if r['owner'].strip() == 'Okoye'])",
            "`owner` = `Okoye`",
        ),
        ("Which were late?", "print([r for r in rows if 'Okoye' in r['owner']])", "`owner` = `Okoye`"),
        ("Which were late?", "print(df[df.owner.eq('Okoye')])", "`owner` = `Okoye`"),
        (
            "Which were late?",
            "print([r for r in rows if r['owner'] in ('Okoye',)])",
            "`owner` = `Okoye`",
        ),
        ("Which were late?", "print(df.query(\"owner == 'Okoye' and late > 3\"))", "`owner` = `Okoye`"),
        ("Which were late?", "print(df.query(\"`age group` in ['18-29']\"))", "`age group` = `18-29`"),
        ("Which were late?", "name = 'Okoye'\nprint(df[df['owner'] == name])", "`owner` = `Okoye`"),
        ("Which were late?", "name = 'Okoye'\nprint(df.query('owner == @name'))", "`owner` = `Okoye`"),
        ("Which were late?", "print(df.filter(pl.col('owner') == 'Okoye'))", "`owner` = `Okoye`"),
        (
            "Which were late?",
            "for r in rows:\n  match r['owner']:\n    case 'Okoye': print(r)",
            "`owner` = `Okoye`",
        ),
        ("Which were late?", "print(df.groupby('owner').get_group('Okoye'))", "`owner` = `Okoye`"),
        (
            "Which were late?",
            "g = df.groupby('owner')\nprint(g.late.sum().loc['Okoye'])",
            "`owner` = `Okoye`",
        ),
        ("Which were late?", "print(df.set_index('owner').loc['Okoye', 'late'])", "`owner` = `Okoye`"),
        ("Which were late?", "print(pd.read_csv(f, index_col='owner').xs('Okoye'))", "`owner` = `Okoye`"),
    ],
)
def test_rows_that_nobody_named_are_told(query: str, code: str, selected: str) -> None:
    reason = unnamed_selection(query, code, Given(query), OWNERS)
    assert reason == f"The program selects {selected}, which the question does not name."


def test_texts_that_may_translate_a_question_are_not_told() -> None:
    query, profile = "Wie hoch ist der Umsatz im Norden?", "columns: `region` (text), `sales` (int)"
    code = "print(df[df['region'] == 'north'].sales.sum())"
    assert unnamed_selection(query, code, Given(query), profile, is_english=False) == ""
    code = "print(df[df['region'] == 17].sales.sum())"
    assert "`17`" in unnamed_selection(query, code, Given(query), profile, is_english=False)


@pytest.mark.parametrize(
    ("query", "code", "read"),
    [
        ("Who came on Thursday?", "print('On Thursday:', df[df['wednesday'] == 'yes'])", "Wednesday"),
        ("What was sold in May?", "print(df[df['month'] == 'June'].sold.sum())", "June"),
    ],
)
def test_another_day_or_month_than_was_asked_for_is_told(query: str, code: str, read: str) -> None:
    assert unnamed_selection(query, code, Given(query), OWNERS).startswith(
        f"The program reads {read}, and the question asks"
    )


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("How many orders of Okoye are there?", "print(df[df['owner'] == 'Okoye'])"),
        ("How much rent was paid?", "print(df[df['category'] == 'rent'].amount.sum())"),
        ("How many are in category B?", "print(df[df['category'] == 'B'])"),
        ("How many were sold in March?", "print(df[df['month'] == 3])"),
        ("What did the first quarter bring?", "print(df[df['quarter'] == 'Q1'].amount)"),
        ("Was war von Januar bis März?", "print(df[df['month'] == 'March'])"),
        ("Who came on Thursday?", "print(df[df['thursday'] == 'yes'])"),
        ("Who has answered?", "print(df[df['state'] == 'yes'])"),
        ("How many women are there?", "print(df[df['sex'] == 'F'])"),
        ("What is the average?", "print([row for row in rows if row['kind'] != 'x'])"),
        ("How many rows are there?", "if __name__ == '__main__':\n    print(len(df))"),
        ("Who won gold or silver?", "print(df[df['medal'].str.contains('gold|silver', case=False)])"),
        ("What did Okoye and Lind buy?", "print(df[df['owner'].isin(['Okoye', 'Lind'])])"),
        ("Which have a digit?", "print(df[df['name'].str.contains(r'[0-9]')])"),
        ("What is in the Carribean?", "print(df[df['region'] == 'Caribbean'])"),
        ("Who lives in North Carolina?", "print(df[df['state'] == 'NorthCarolina'])"),
        ("Which end in a dot?", "print(df[df['name'].str.endswith('.')])"),
        ("What do the tables say?", "print([path for path in paths if path.suffix == '.xlsx'])"),
        ("How many lines are comments?", "print([line for line in lines if line.startswith('note')])"),
        ("Which was by more, feb 1 2013 or dec 3?", "print(df[df['date'] == '1 February 2013'])"),
        ("Sales in January?", "print(df[df['date'].str.startswith('2024-01')])"),
        ("Who won most after Spain?", "print(df[~df['nation'].isin(['Total', 'Spain'])])"),
        ("How many golfers from the US took part?", "print(df[df['country'] == 'United States'])"),
        ("How many are there?", "print("),
        ("What did Okoye buy?", "print(df.query(\"owner == 'Okoye' and kind != 'x'\"))"),
        ("What did my colleagues buy?", "print(df.query('owner not in [\"Okoye\"] and price > @least'))"),
        ("What did Okoye buy?", "print(df.groupby('owner').get_group('Okoye'))"),
        ("What did each buy?", "for name in ['Lind', 'Okoye']:\n  print(df[df['owner'] == name])"),
        (
            "What is the balance?",
            "for r in rows:\n  match r['kind']:\n    case 'in': n += r['x']\n    case 'out': n -= r['x']",
        ),
        ("Show all and the sum.", "t = df.groupby('owner').sum()\nt.loc['Total'] = t.sum()\nprint(t)"),
        ("What is the deviation?", "print(df.set_index('owner').describe().loc['std'])"),
        ("What is the upper quartile?", "print(df.set_index('owner').describe().loc['75%', 'price'])"),
        ("What is the price?", "print(df.groupby('owner')['price'].agg(['sum', 'max']).loc[:, 'sum'])"),
    ],
)
def test_rows_that_a_question_names_are_not(query: str, code: str) -> None:
    assert unnamed_selection(query, code, Given(query), OWNERS) == ""


TILL = (
    "- file `till.csv`: CSV\n  columns: `yr` (int), `kind` (text: open, paid), `item` (text), `price` (int)"
)
KINDS = [
    ("What was spent on fruit?", "print(df[df['item'].isin(['apples', 'pears'])].price.sum())"),
    (
        "What was spent on fruit?",
        "fruit = {'apples', 'pears'}\nprint(df[df['item'].isin(fruit)].price.sum())",
    ),
    ("What did we take at the weekend?", 'print(df.query(\'day in ["Sat", "Sun"]\').price.sum())'),
    ("What did we take at the weekend?", "print(df[(df.day == 'Sat') | (df.day == 'Sun')].price.sum())"),
    ("Who is from Scandinavia?", "print([r for r in rows if r['land'] in ('Norway', 'Sweden')])"),
    ("What is still unpaid?", "print(df[df['kind'] == 'open'].price.sum())"),
    ("What are the called-off orders worth?", "print(df[df['kind'] == 'cancelled'].price.sum())"),
    ("What was it in 2025?", "print(df[df['yr'] == 2025].price.sum())"),
    ("What came after 2023?", "print(df[df['yr'] == 2024].price.sum())"),
    ("What was it from 2020-2022?", "print(df[df['yr'] == 2021].price.sum())"),
    ("What was it in 2024/25?", "print(df[df['yr'] == 2025].price.sum())"),
    ("What did 2010 bring in 2023 prices?", "print(df[df['yr'] == 2010].price.sum())"),
]


@pytest.mark.parametrize(("query", "code"), KINDS)
def test_what_a_question_names_by_its_kind_state_or_year_is_named(query: str, code: str) -> None:
    assert unnamed_selection(query, code, Given(query), TILL) == ""
    assert unanswered_subject(query, READ + code, TILL) == ""


@pytest.mark.parametrize(
    "code",
    [
        "print(df[df['yr'] == 2023].price.sum())",
        "print(df.query('yr == 2023').price.sum())",
        "print(df.set_index('yr').at[2023, 'price'])",
        "print([r for r in rows if r['day'].startswith('2023-05')])",
        "year = 2023\nprint(df[df['yr'] == year].price.sum())",
    ],
)
def test_another_year_than_was_asked_for_is_told(code: str) -> None:
    query = "What was the turnover in 2025?"
    expected = "The program reads 2023, and the question asks for 2025."
    assert unnamed_selection(query, code, Given(query), TILL) == expected


YEARLY = "columns: `year` (int, 2018 to 2022), `sales` (int, 1990 to 2050)"
DAILY = "columns: `day` (date, 2023-06-01 to 2024-06-30), `kwh` (int, 731 to 845)"
MONTHLY = "columns: `month` (text: April, June, March, May), `mm` (int, 22 to 60)"
NAMES = "columns: `name` (text: Mary, Jane, Mark), `day` (date, 2023-01-01 to 2023-12-31), `n` (int, 1 to 3)"
DROPPED = {
    "a year that is not there": ("What were sales in 2023?", YEARLY, "print('2023:', df['sales'].iloc[-1])", "2018 to 2022"),
    "in a label": ("Sales in 2024?", YEARLY, "print(f'Sales in 2024: {df.sales.max()}')", "2018 to 2022"),
    "one of two": ("wie viel strom im juli 2024?", DAILY, "print(t[t.day.str.contains('-07-')])", "2023 to 2024"),
    "a month": ("rainfall in august?", MONTHLY, "print('August:', df['mm'].iloc[-1])", "March, April, May, June"),
    "May": ("How many in May 2024?", MONTHLY.replace(", May", ""), "print(df['mm'].iloc[-1])", "March, April, June"),
}  # fmt: skip
KEPT = {
    "a number": ("What were sales in 2020?", YEARLY, "print(df[df['year'] == 2020].sales)"),
    "a name": ("What were sales in 2020?", YEARLY, "y = 2020\nprint(df[df.year == y].sales)"),
    "a column": ("What were sales in 2020?", YEARLY, "print(df.set_index('year').T['2020'])"),
    "a day": ("kWh in June 2024?", DAILY, "print(df[df.day >= pd.Timestamp('2024-06-01')].kwh.sum())"),
    "the last one": ("What were sales in 2022?", YEARLY, "print(df.sort_values('year').sales.iloc[-1])"),
    "an earlier one": ("What was sold before 2023?", YEARLY, "print(df.sales.sum())"),
    "a plan": ("Estimate the sales of 2024.", YEARLY, "print(df.sales.mean())"),
    "the only one": ("Sales in 2023?", NAMES, "print(df.n.sum())"),
    "no year": ("What was sold for 2050?", "columns: `sales` (int, 1990 to 2040)", "print(df.sales.sum())"),
    "a month by its number": ("rain in August?", MONTHLY, "print(df[df.at.dt.month == 8].mm)"),
    "a short name": ("rain in August?", MONTHLY, "print(rain.get('Aug', 'not there'))"),
    "a column of something else": (
        "What did cars cost in 2024?",
        "columns: `model_year` (int, 1998 to 2023), `price` (int, 1 to 9)",
        "print(df['price'].mean())",
    ),
    "another column of days": (
        "What were sales in 2024?",
        "columns: `expiry` (date, 2025-01-01 to 2026-01-01), `n` (int, 1 to 9)",
        "print(df['n'].sum())",
    ),
    "a sum": ("How old was each in 2024?", YEARLY, "print(2000 + 24 - df['year'])"),
    "a month in a text": ("rain in August?", MONTHLY, "print(df[df.at.str.contains('-08-')].mm)"),
    "ranges of days": (
        "Who works on Wednesday?",
        "columns: `name` (text: Ann, Bo), `days` (text: Mon-Fri, Sat-Sun)",
        "print(df[df['midweek']].name)",
    ),
    "names of people": ("How many in August?", NAMES, "print(df[df.day.dt.month == 8].n.sum())"),
    "what may be": ("How much may it rain?", MONTHLY.replace(", May", ""), "print(df.mm.max())"),
}


@pytest.mark.parametrize(("query", "profile", "code", "shown"), DROPPED.values(), ids=DROPPED)
def test_a_period_that_a_program_does_not_select_is_told(
    query: str, profile: str, code: str, shown: str
) -> None:
    reason = unnamed_selection(query, code, Given(query), profile)
    assert reason.startswith(f"The program reads {shown}, and the question asks for ")


@pytest.mark.parametrize(("query", "profile", "code"), KEPT.values(), ids=KEPT)
def test_a_period_that_a_program_selects_or_may_is_not(query: str, profile: str, code: str) -> None:
    assert unnamed_selection(query, code, Given(query), profile) == ""


def test_a_guess_by_the_last_letter_of_a_name_is_told() -> None:
    code = "print(df['name'].str.endswith('a').sum())"
    query = "How many women work here?"
    assert "`df['name']` = `…a`" in unnamed_selection(query, code, Given(query), OWNERS)
    assert unnamed_selection("What is the gender split?", code, Given(""), OWNERS) != ""
    for query in (
        "How many names end with an a?",
        "Cuántos nombres terminan en a?",
        "Which nouns are feminine?",
    ):
        assert unnamed_selection(query, code, Given(query), OWNERS) == ""


def test_the_first_rows_belong_to_a_table() -> None:
    code = "df = pd.read_excel('a.xlsx', skiprows=3)\ndf = df.iloc[1:]\nprint(df.n.sum())"
    assert "selects `df.iloc[1:]`" in unnamed_selection("What is the total?", code, Given(""), OWNERS)
    for query, kept in (
        ("What is the total without the first row?", code),
        ("What is the total? Below the names are units.", code),
        ("What is the change?", code.replace("df = df", "df['c'] = df['v'].diff()\ndf = df")),
        ("What is the total?", code.replace("iloc[1:]", "iloc[:-1]")),
        ("What are the others?", code.replace("df.iloc[1:]", "df.sort_values('n').iloc[1:]")),
    ):
        assert unnamed_selection(query, kept, Given(""), OWNERS) == ""


def test_a_column_that_is_taken_by_its_place_is_one_like_others() -> None:
    for code in ("print(df[df.columns[-1]].mean())", "print(df.iloc[:, 2].mean())"):
        assert "used the column rain" in unanswered_subject("What is the mean humidity?", code, WEATHER)


SAID = {
    "a plural": (
        "Which cities have a million?",
        "columns: `city` (text), `pop` (int)",
        "print(df[df['pop'] > 1e6].city)",
    ),
    "a net price": (
        "What is the price with tax?",
        "columns: `item` (text), `net` (float)",
        "print(df['net'] * 1.2)",
    ),
    "a time": (
        "Who is the fastest?",
        "columns: `name` (text), `zeit` (float)",
        "print(df.loc[df.zeit.idxmin()].name)",
    ),
    "a change": (
        "What is the average daily change?",
        "columns: `day` (date), `v` (float)",
        "print(df['v'].diff().mean())",
    ),
    "hours by a letter": (
        "What is the average speed?",
        "columns: `km` (float), `h` (float)",
        "print(df['km'].sum() / df['h'].sum())",
    ),
    "days for speed": (
        "Who delivers fastest?",
        "columns: `who` (text), `days` (int)",
        "print(df.groupby('who').days.mean().idxmin())",
    ),
    "a short name": (
        "What is the lowest humidity?",
        "columns: `ts` (datetime), `rh` (float)",
        "print(df['rh'].min())",
    ),
    "a host": (
        "Which server failed most?",
        "columns: `host` (text), `n` (int)",
        "print(df.groupby('host').n.sum().idxmax())",
    ),
    "a sign": (
        "What is the mean share?",
        "columns: `%` (float), `(` (text)",
        "print(df['%'].mean(), df['('])",
    ),
    "after": (
        "How much after the tip?",
        "columns: `guest` (text), `bill` (float)",
        "print(df['bill'].sum() * 1.2)",
    ),
}


@pytest.mark.parametrize(("query", "profile", "code"), SAID.values(), ids=SAID)
def test_what_columns_may_hold_is_there(query: str, profile: str, code: str) -> None:
    assert unanswered_subject(query, code, profile) == ""


ANYWHERE = {
    "age": (
        "Quel est l'âge moyen des adhérents ?",
        "columns: `nom` (text), `cotisation` (int)",
        "cotisation",
    ),
    "wiek": ("Jaki jest średni wiek pacjentów?", "columns: `pacjent` (text), `wizyty` (int)", "wizyty"),
    "salary": ("Wie hoch ist das Gehalt im Mittel?", "columns: `name` (text), `jahre` (int)", "jahre"),
    "rating": (
        "¿Qué tienda tiene la mejor valoración?",
        "columns: `tienda` (text), `ventas` (int)",
        "ventas",
    ),
}


@pytest.mark.parametrize(("query", "profile", "column"), ANYWHERE.values(), ids=ANYWHERE)
def test_what_is_missing_is_told_in_some_other_languages(query: str, profile: str, column: str) -> None:
    code = f"print(df['{column}'].mean())"
    assert f"used the column {column}" in unanswered_subject(query, code, profile, is_english=False)
    assert unanswered_subject("Wie schnell ist fast jeder?", code, profile, is_english=False) == ""


def test_what_is_computed_of_several_columns_may_have_any_name() -> None:
    profile = "columns: `nurse` (text), `hours` (int), `contract` (int)"
    for code in ("print(df['hours'] - df['contract'])", "print(pl.col('hours') - pl.col('contract'))"):
        assert unanswered_subject("How many hours of overtime did each nurse do?", code, profile) == ""


def test_power_may_be_called_by_its_unit() -> None:
    profile, code = (
        "columns: `circuit` (text), `watts` (int)",
        "print(df[df['circuit'] == 'B']['watts'].sum())",
    )
    assert unanswered_subject("What is the total power draw of circuit B?", code, profile) == ""
