"""Make change with the fewest coins, by dynamic programming.

Trying the largest coin first fails for some coins; a table of the best answer for each amount does not.

A vending machine must give back 63 cents; what is the smallest number of coins?
Why does always taking the biggest coin first sometimes give too many coins?
With stamps of 1, 3 and 4, how few stamps do I need to make exactly 6?
Can I pay exactly 7 euros using only 5 euro pieces, or is it impossible?
Minimum number of coins for an amount python?
"""


def fewest_coins(coins, amount):
    best = [[]] + [None] * amount
    for total in range(1, amount + 1):
        for coin in coins:
            if coin <= total and best[total - coin] is not None:
                candidate = [*best[total - coin], coin]
                if best[total] is None or len(candidate) < len(best[total]):
                    best[total] = candidate
    return best[amount]


print("Fewest coins for 6:", fewest_coins([1, 3, 4], 6))
print("Fewest coins for 63:", fewest_coins([1, 5, 10, 21, 25], 63))
print("Possible for 7 with coins of 5:", fewest_coins([5], 7) is not None)
