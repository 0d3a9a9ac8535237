"""Find the break-even point: how many units must be sold to cover the fixed costs.

How many cakes must my bakery sell before I stop losing money?
Rent is 5000, each shirt sells for 25 and costs 15; when do I start earning?
How do I compute the minimum sales quantity at which revenue equals costs?
How many tickets does our school concert need to sell to pay for the hall?
Break even quantity fixed cost price variable cost?
"""

import math


def break_even_units(fixed_costs, price, cost_per_unit):
    margin = price - cost_per_unit
    if margin <= 0:
        raise ValueError("each unit must earn more than it costs")
    return math.ceil(fixed_costs / margin)


units = break_even_units(fixed_costs=5000, price=25, cost_per_unit=15)
print("Units to break even:", units)
print("Profit with 600 units:", 600 * (25 - 15) - 5000)
