# stopped: processors by an expression
import re; re.match('(a+)+$', 'a' * 50 + 'b')