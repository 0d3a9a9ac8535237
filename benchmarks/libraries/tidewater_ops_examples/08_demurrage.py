# We had 5,400 t to discharge at 3,000 t per day and took 57 hours. What is the demurrage at 8,000 euros a day?
from tidewater_ops.cargo import allowed_hours, settle_laytime

allowed = allowed_hours(5400, 3000)
settlement = settle_laytime(allowed, 57, 8000)
print(settlement.demurrage_eur)
