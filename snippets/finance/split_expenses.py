"""Split shared expenses of a trip fairly and tell who owes whom how much."""

paid = {"Ann": 90, "Bob": 30, "Cem": 0}

share = sum(paid.values()) / len(paid)
balance = {name: amount - share for name, amount in paid.items()}
print(f"Each one's share: {share:.2f}")
while max(balance.values()) > 0.005:
    debtor = min(balance, key=balance.get)
    creditor = max(balance, key=balance.get)
    amount = min(-balance[debtor], balance[creditor])
    balance[debtor] += amount
    balance[creditor] -= amount
    print(f"{debtor} pays {creditor} {amount:.2f}")
