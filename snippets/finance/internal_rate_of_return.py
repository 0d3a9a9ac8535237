"""Find the internal rate of return (IRR) of a series of cash flows by bisection.

It is the discount rate at which the investment just breaks even.
"""


def value_at(rate, cash_flows):
    return sum(flow / (1 + rate) ** year for year, flow in enumerate(cash_flows))


def internal_rate(cash_flows, low=-0.9, high=10.0):
    while high - low > 1e-9:
        middle = (low + high) / 2
        if value_at(middle, cash_flows) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


print(f"Internal rate of return: {internal_rate([-1000, 100, 1100]):.2%}")
