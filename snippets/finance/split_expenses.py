"""Split shared expenses of a trip fairly and tell who owes whom how much.

Three friends went on holiday, Ann paid 90 and Bob 30; who has to give money to whom?
How do I settle up group costs equally with few payments?
My flatmates and I bought groceries separately; how do we even it out?
After the barbecue, what does each guest need to transfer to make it fair?
Settle debts between friends equal shares python?
"""

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
