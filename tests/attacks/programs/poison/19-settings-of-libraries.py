# clean: settings of libraries

import decimal, locale, logging, random, tempfile, warnings
decimal.getcontext().prec = 2; decimal.DefaultContext.prec = 2; locale.setlocale(0, 'C')
logging.basicConfig(level=0); random.seed(1); tempfile.tempdir = '/x'; warnings.simplefilter('error')
socket.setdefaulttimeout(0.1); time.tzset()
