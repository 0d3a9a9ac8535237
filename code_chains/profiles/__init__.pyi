from .description import describe as describe
from .description import describe_inputs as describe_inputs
from .profiler import FileProfiler as FileProfiler
from .profiler import Profiles as Profiles
from .variables import is_table as is_table
from .variables import profile_variables as profile_variables
