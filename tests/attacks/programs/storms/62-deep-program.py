# harmless: deep program
eval('(' * 99999 + ')' * 99999)