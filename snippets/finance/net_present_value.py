"""Decide whether an investment pays off by its net present value (NPV), discounting cash flows.

A machine costs 1000 now and brings 300, 400, 500 later; is it worth buying?
How do I value future income in today's money at a 10 percent discount rate?
Should our company open a shop given the expected earnings of the next three years?
How much are payments that I get in coming years worth right now?
NPV discounted cash flow invest or not python?
"""


def net_present_value(rate, cash_flows):
    """Discount cash flows; the first is today, each other one a year later."""
    return sum(flow / (1 + rate) ** year for year, flow in enumerate(cash_flows))


cash_flows = [-1000, 300, 400, 500]
for rate in [0.05, 0.10]:
    value = net_present_value(rate, cash_flows)
    print(f"Net present value at {rate:.0%}: {value:.2f}, so {'invest' if value > 0 else 'do not invest'}")
