"""Find the break-even point: how many units must be sold to cover the fixed costs."""

import math


def break_even_units(fixed_costs, price, cost_per_unit):
    margin = price - cost_per_unit
    if margin <= 0:
        raise ValueError("each unit must earn more than it costs")
    return math.ceil(fixed_costs / margin)


units = break_even_units(fixed_costs=5000, price=25, cost_per_unit=15)
print("Units to break even:", units)
print("Profit with 600 units:", 600 * (25 - 15) - 5000)
