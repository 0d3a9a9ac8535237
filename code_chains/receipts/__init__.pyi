from .again import Comparison as Comparison
from .again import read_receipt as read_receipt
from .again import run_again as run_again
from .receipt import GivenFile as GivenFile
from .receipt import Receipt as Receipt
from .receipt import StatedValue as StatedValue
from .receipt import create_receipt as create_receipt
from .receipt import save_receipt as save_receipt
