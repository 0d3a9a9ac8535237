from .given import Expectations as Expectations
from .given import UntestableError as UntestableError
from .given import expect as expect
from .given import expectations_of as expectations_of
