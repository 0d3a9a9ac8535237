"""Find the internal rate of return (IRR) of a series of cash flows by bisection.

It is the discount rate at which the investment just breaks even.

I invested 1000 and got 100, then 1100 back; what yearly return did I make?
How do I find the rate that makes the present value of all payments zero?
What annual yield does buying this flat give, counting rents and the final sale price?
Solar panels cost 8000 and save 900 a year; what percentage return is that?
IRR of cash flows python without numpy_financial?
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
